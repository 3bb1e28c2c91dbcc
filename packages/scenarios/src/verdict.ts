import { addressAndPort, compareIps, type IpAddress } from '@switchyard/core';
import type { Expectation, RunKind, ScenarioFlow, ScenarioHealthCheck, ScenarioStep } from './scenario.ts';

/** Result of one step in one run. `isAsExpected` is the verdict; the texts are for the report. */
export interface StepResult {
  readonly line: number;
  readonly step: string;
  readonly expected: string;
  readonly observed: string;
  readonly isAsExpected: boolean;
  /** Why the run says so: reasons of `explain`, the trace, or the probes. */
  readonly because: readonly string[];
}

/** Result of one run of a scenario: one entry per step that checks something. */
export interface RunResult {
  readonly run: RunKind;
  readonly steps: readonly StepResult[];
}

/** Description of a restart for reports. */
export const restartText = 'restart of the agent';
/** Expected result of a restart. */
export const nothingChanges = 'nothing changes';

/** Outcome of a flow in a run. Endpoints carry the port that was reached. */
export type Observation =
  | {
      readonly kind: 'forward';
      readonly to: readonly { readonly address: IpAddress; readonly port: number }[];
      readonly masquerade: boolean;
    }
  | { readonly kind: 'reject' | 'drop' | 'pass' };

/** An expectation as text; the same text for the same outcome in every run. */
export function expectationText(expect: Expectation): string {
  return expect.kind === 'forward' ? forwardText(expect.to, expect.masquerade) : expect.kind;
}

/** Expectation of one client: with session affinity its former endpoint. */
export function keptExpectation({ expect, kept }: ScenarioFlow): Expectation {
  if (kept === undefined || expect.kind !== 'forward') return expect;
  return { ...expect, to: expect.to.filter(({ address }) => address === kept) };
}

/** Describes an observation in as much detail as the expectation: with ports only if it names them. */
export function observationText(seen: Observation, flow: ScenarioFlow): string {
  if (seen.kind !== 'forward') return seen.kind;
  const { expect } = flow;
  const namesPorts = expect.kind !== 'forward' || expect.to.some(({ port }) => port !== undefined);
  const to = seen.to.map(({ address, port }) => ({ address, port: namesPorts ? port : undefined }));
  return forwardText(to, seen.masquerade);
}

/** The endpoints that answered, each once, sorted, and whether the source was rewritten. */
function forwardText(
  to: readonly { readonly address: IpAddress; readonly port: number | undefined }[],
  masquerade: boolean,
): string {
  const texts = [...to]
    .sort((a, b) => compareIps(a.address, b.address) || (a.port ?? 0) - (b.port ?? 0))
    .map(({ address, port }) => (port === undefined ? address : addressAndPort(address, port)));
  return `forward to ${[...new Set(texts)].join(', ')}${masquerade ? ', masqueraded' : ''}`;
}

/** Describes a flow for reports. */
export function flowText(flow: ScenarioFlow): string {
  const from = flow.fromEndpoint === undefined ? flow.from : `endpoint ${flow.fromEndpoint}`;
  const port = flow.sourcePort === undefined ? '' : ` port ${flow.sourcePort}`;
  return `${from}${port} to ${addressAndPort(flow.to, flow.port)}/${flow.protocol}`;
}

/** A step in a scenario's own words, such as `remove-endpoint shop/cart 10.244.1.5`. */
export function changeText(step: ScenarioStep): string {
  const action = step.kind.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return [action, ...objectsOf(step)].join(' ');
}

function objectsOf(step: ScenarioStep): readonly string[] {
  switch (step.kind) {
    case 'putService':
      return [step.service.name];
    case 'removeService':
      return [step.service];
    case 'putEndpoint':
      return [step.endpoint.service, step.endpoint.ip];
    case 'removeEndpoint':
      return [step.service, step.ip];
    case 'nodeAddress':
      return [step.address];
    case 'putServiceCidr':
      return [step.name, step.cidr];
    case 'removeServiceCidr':
      return [step.name];
    default:
      return [];
  }
}

/** A health check's answer as text. */
export function healthText(answer: Pick<ScenarioHealthCheck, 'status' | 'localEndpoints'>): string {
  if (answer.status === 'closed') return 'closed';
  return `${answer.status}${answer.localEndpoints === undefined ? '' : ` with ${answer.localEndpoints} local endpoint(s)`}`;
}
