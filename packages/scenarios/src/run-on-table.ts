import { explain, type Explanation, type Flow, ipFamilyOf, isSentBySocket, type ServiceKey } from '@switchyard/core';
import type { Scenario, ScenarioFlow, ScenarioHealthCheck } from './scenario.ts';
import { coreFlow } from './scenario-flow.ts';
import { firstState, nextState, ScenarioTables, type TablesByFamily } from './scenario-tables.ts';
import { expectationText, flowText, healthText, observationText } from './verdict.ts';
import type { RunResult, Observation, StepResult } from './verdict.ts';

/** Runs a scenario on the table: asks the oracle about every flow. Milliseconds; needs nothing. */
export function runOnTable(scenario: Scenario): RunResult {
  const all = new ScenarioTables(scenario);
  let state = firstState(scenario);
  let tables = all.update(state);
  const steps: StepResult[] = [];
  for (const step of scenario.steps) {
    const next = nextState(state, step);
    if (next !== state) tables = all.update(next);
    state = next;
    if (step.kind === 'flow') steps.push(flowOnTable(scenario, tables, step));
    if (step.kind === 'healthCheck') steps.push(healthOnTable(tables, step));
  }
  return { run: 'table', steps };
}

/** Returns the oracle's result for one flow. */
export function flowOnTable(
  scenario: Scenario,
  tables: TablesByFamily,
  { flow, line }: { readonly flow: ScenarioFlow; readonly line: number },
): StepResult {
  const table = tables.get(ipFamilyOf(flow.to));
  const sent = coreFlow(scenario, flow);
  const explanation = table === undefined ? undefined : explain(table, sent, scenario.dataplane);
  const found = observationOf(explanation?.verdict);
  const seen = isBySocket(scenario, sent, explanation) ? found : withHairpin(found, flow);
  const expected = expectationText(flow.expect);
  const observed = observationText(seen, flow);
  const because = explanation?.reasons.map((reason) => reason.text) ?? [];
  return { line, step: flowText(flow), expected, observed, isAsExpected: expected === observed, because };
}

function observationOf(verdict: ReturnType<typeof explain>['verdict'] | undefined): Observation {
  if (verdict === undefined) return { kind: 'pass' };
  return verdict.kind === 'forward'
    ? { kind: 'forward', to: verdict.endpoints, masquerade: verdict.masquerade }
    : verdict;
}

function isBySocket({ dataplane }: Scenario, sent: Flow, explanation: Explanation | undefined): boolean {
  return explanation?.frontend !== undefined && isSentBySocket(sent, explanation.frontend, dataplane);
}

/** The oracle leaves hairpin to the backend: a pod that can only reach itself is always masqueraded. */
function withHairpin(seen: Observation, flow: ScenarioFlow): Observation {
  if (seen.kind !== 'forward' || !seen.to.every(({ address }) => address === flow.fromEndpoint)) return seen;
  return { ...seen, masquerade: true };
}

/** Returns the table's result for one health check. */
export function healthOnTable(
  tables: TablesByFamily,
  { check, line }: { readonly check: ScenarioHealthCheck; readonly line: number },
): StepResult {
  const found = tables.get(check.ipFamily)?.healthChecks.get(check.service as ServiceKey);
  const observed =
    found === undefined
      ? healthText({ status: 'closed', localEndpoints: undefined })
      : healthText({ status: found.localReadyEndpoints > 0 ? 200 : 503, localEndpoints: found.localReadyEndpoints });
  const expected = healthText(check);
  const isAsExpected = expected === observed;
  return { line, step: healthStepText(check), expected, observed, isAsExpected, because: [] };
}

/** Describes a health check for reports. */
export function healthStepText(check: ScenarioHealthCheck): string {
  return `${check.ipFamily} health check of ${check.service}`;
}
