import { type BackendHarness, type BackendResult, runOnBackend, type Scenario } from '../../src/index.ts';

const { signal } = new AbortController();
const results = new WeakMap<BackendHarness, WeakMap<Scenario, Promise<BackendResult>>>();

/** Result of a scenario on a kernel without faults. Tests that compare with it share one run per harness and scenario. */
export function quietRun(scenario: Scenario, harness: BackendHarness): Promise<BackendResult> {
  const known = results.get(harness) ?? new WeakMap<Scenario, Promise<BackendResult>>();
  results.set(harness, known);
  const result = known.get(scenario) ?? runOnBackend(scenario, harness, {}, signal);
  known.set(scenario, result);
  return result;
}
