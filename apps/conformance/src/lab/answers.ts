import { type IpAddress, UsageError } from '@switchyard/core';
import type { ProbeResult } from '@switchyard/lab';
import { healthText, type Scenario, type ScenarioHealthCheck } from '@switchyard/scenarios';
import { servicesOf } from '../cases/scenario-parts.ts';
import type { Seen } from '../model/test-environment.ts';

/** The flow's sender, and the endpoints that may answer. */
export interface AnswerContext {
  readonly addressesByEcho: ReadonlyMap<string, readonly IpAddress[]>;
  /** Same family as the flow. */
  readonly isOfFamily: (address: IpAddress) => boolean;
  readonly source: string;
  readonly sender: IpAddress | undefined;
  /** node1's own address, which masqueraded packets have. */
  readonly masqueradeAddress: string;
}

/** A probe's result in the terms of a scenario. */
export function seenOf(result: ProbeResult, context: AnswerContext): Seen {
  if (result.status !== 'answered') return seenOfSilence(result);
  const address = context.addressesByEcho.get(result.by ?? '')?.find(context.isOfFamily);
  if (address === undefined) return { kind: 'other', text: `answered by ${result.by ?? 'a stranger'}` };
  const { destinationPort: port } = JSON.parse(result.body) as { readonly destinationPort: number };
  const { seenSource } = result;
  if (seenSource !== context.source && seenSource !== context.masqueradeAddress) {
    return { kind: 'other', text: `${address} saw the source ${seenSource}` };
  }
  const isMasqueraded = seenSource === context.masqueradeAddress;
  return { kind: 'endpoint', address, port, isMasqueraded, isSender: address === context.sender };
}

/** Result of a probe that no endpoint answered. */
export function seenOfSilence(result: Exclude<ProbeResult, { readonly status: 'answered' }>): Seen {
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
  const answer = tryParse(body);
  if (answer === undefined) return `status ${status} with a body that is not that of a health check`;
  const key = `${answer.service.namespace}/${answer.service.name}`;
  if (key !== check.service) return `an answer for ${key}`;
  return healthText({ status, localEndpoints: check.localEndpoints === undefined ? undefined : answer.localEndpoints });
}

interface HealthAnswer {
  readonly service: { readonly namespace: string; readonly name: string };
  readonly localEndpoints: number;
}

function tryParse(body: string): HealthAnswer | undefined {
  try {
    const value = JSON.parse(body) as Partial<HealthAnswer>;
    return value.service === undefined ? undefined : (value as HealthAnswer);
  } catch {
    return undefined;
  }
}
