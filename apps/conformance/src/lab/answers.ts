import { type IpAddress, UsageError } from '@switchyard/core';
import type { ProbeResult } from '@switchyard/lab';
import { healthText, type Scenario, type ScenarioHealthCheck } from '@switchyard/scenarios';
import { servicesOf } from '../cases/scenario-cases.ts';
import type { Seen } from '../model/test-environment.ts';

export interface AnswerContext {
  /** The endpoint, of the flow's family, whose echo server gives this name. */
  readonly endpointOf: (echo: string) => IpAddress | undefined;
  readonly sender: IpAddress | undefined;
  /** A scenario's port by the one that answered. */
  readonly portOf: (port: number) => number;
  /** Whether the seen source is the node's instead of the sender's; undefined: neither. */
  readonly isMasqueraded: (source: string, isSender: boolean) => boolean | undefined;
  /** Ends the text about another source. */
  readonly wanted: string;
}

export function seenOf(result: ProbeResult, context: AnswerContext): Seen {
  if (result.status !== 'answered') return seenOfSilence(result);
  const { by, seenSource = '' } = result;
  const address = by === undefined ? undefined : context.endpointOf(by);
  if (address === undefined) return { kind: 'other', text: `answered by ${by ?? 'a stranger'}` };
  const isSender = address === context.sender;
  const isMasqueraded = context.isMasqueraded(seenSource, isSender);
  if (isMasqueraded === undefined) {
    return { kind: 'other', text: `${address} saw the source ${seenSource}${context.wanted}` };
  }
  const { destinationPort } = JSON.parse(result.body) as { readonly destinationPort: number };
  return { kind: 'endpoint', address, port: context.portOf(destinationPort), isMasqueraded, isSender };
}

function seenOfSilence(result: Exclude<ProbeResult, { readonly status: 'answered' }>): Seen {
  switch (result.status) {
    case 'refused':
    case 'timeout':
      return { kind: result.status };
    // The sender's own kernel reports its drop to the socket; on the wire it is silence.
    case 'dropped':
      return { kind: 'timeout' };
    case 'unreachable':
      return { kind: 'other', text: `unreachable (${result.code})` };
    default:
      return { kind: 'other', text: result.status };
  }
}

/** A Service's health check port, also after the Service was removed. */
export function healthPortOf(scenario: Scenario, name: string): number {
  const all = servicesOf(scenario).filter((service) => service.name === name);
  const port = all.find(({ healthCheckNodePort }) => healthCheckNodePort !== undefined)?.healthCheckNodePort;
  if (port === undefined)
    throw new UsageError('conformance.health', `${scenario.id}: ${name} never has a healthCheckNodePort`);
  return port;
}

/** Result of a health check's HTTP answer, in the words of `healthText`. */
export function healthSeen(result: ProbeResult, check: ScenarioHealthCheck): string {
  if (result.status === 'refused') return healthText({ status: 'closed', localEndpoints: undefined });
  if (result.status !== 'answered') return result.status;
  const { httpStatus: status, body } = result;
  if (status !== 200 && status !== 503) return `status ${status}`;
  const answer = tryParseJson<Partial<HealthAnswer> | null>(body);
  if (answer?.service === undefined) return `status ${status} with a body that is not that of a health check`;
  const key = `${answer.service.namespace}/${answer.service.name}`;
  if (key !== check.service) return `an answer for ${key}`;
  return healthText({ status, localEndpoints: check.localEndpoints === undefined ? undefined : answer.localEndpoints });
}

interface HealthAnswer {
  readonly service: { readonly namespace: string; readonly name: string };
  readonly localEndpoints: number;
}

/** Parses JSON of a program that may not be ours; undefined: it is none. */
export function tryParseJson<T>(text: string): T | undefined {
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}
