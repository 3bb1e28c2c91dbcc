import { compareIps, type IpAddress, type Verdict } from '@switchyard/core';
import type { Expectation, ScenarioFlow, ScenarioHealthCheck } from './scenario.ts';

/** Altitudes at which a scenario runs: pure table, rendered kernel objects with a tracer, real packets. */
export type Altitude = 'table' | 'rendered' | 'lab';

/** What one step showed at one altitude. `isAsExpected` is the verdict; the texts are for the report. */
export interface StepResult {
  readonly line: number;
  readonly step: string;
  readonly expected: string;
  readonly observed: string;
  readonly isAsExpected: boolean;
  /** Why the altitude says so: reasons of `explain`, the trace, or the probes. */
  readonly because: readonly string[];
}

/** The result of a scenario at one altitude: one entry per step that looks at something. */
export interface AltitudeResult {
  readonly altitude: Altitude;
  readonly steps: readonly StepResult[];
}

/** An expectation as text; the same text for the same outcome at every altitude. */
export function expectationText(expect: Expectation): string {
  return expect.kind === 'forward' ? forwardText(expect.to, expect.masquerade) : expect.kind;
}

/** A verdict of the oracle or of a tracer as text. */
export function verdictText(verdict: Verdict): string {
  if (verdict.kind !== 'forward') return verdict.kind;
  return forwardText(
    verdict.endpoints.map((endpoint) => endpoint.address),
    verdict.masquerade,
  );
}

/** The set of addresses that answered, sorted, and whether the source was rewritten. */
export function forwardText(addresses: readonly IpAddress[], masquerade: boolean): string {
  return `forward to ${[...new Set(addresses)].sort(compareIps).join(', ')}${masquerade ? ', masqueraded' : ''}`;
}

/** A flow as a reader would say it. */
export function flowText(flow: ScenarioFlow): string {
  const from = flow.fromEndpoint === undefined ? flow.from : `endpoint ${flow.fromEndpoint}`;
  return `${from} to ${flow.to}:${flow.port}/${flow.protocol}`;
}

/** A health check's answer as text. */
export function healthText(answer: Omit<ScenarioHealthCheck, 'service'>): string {
  if (answer.status === 'closed') return 'closed';
  return `${answer.status}${answer.localEndpoints === undefined ? '' : ` with ${answer.localEndpoints} local endpoint(s)`}`;
}
