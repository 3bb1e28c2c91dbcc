import {
  type backendContract,
  type BackendHarness,
  type BackendResult,
  runOnBackend,
  type Scenario,
} from '../../src/index.ts';

/** The scenarios with these ids, in both families, each with a name for its test. */
export function chosenScenarios(
  all: readonly Scenario[],
  ids: readonly string[],
): readonly { readonly title: string; readonly scenario: Scenario }[] {
  const found = all.filter(({ id }) => ids.includes(id));
  return found.map((scenario) => ({ title: `${scenario.id} ${scenario.ipFamily}`, scenario }));
}

/** Checks only the writes of the backend; the run with packets checks packets. */
export function runWithoutPackets(
  scenario: Scenario,
  on: BackendHarness,
  options: Parameters<typeof runOnBackend>[2],
  signal: AbortSignal,
): Promise<BackendResult> {
  const steps = scenario.steps.filter(({ kind }) => kind !== 'flow');
  return runOnBackend({ ...scenario, steps }, on, options, signal);
}

/** Violations of one clause of the contract, by scenario. IPv4 only: the families differ in nothing that the contract is about. */
export async function clauseFaults(
  { faults }: Pick<(typeof backendContract)[number], 'faults'>,
  harness: BackendHarness,
  scenarios: readonly Scenario[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const broken: string[] = [];
  for (const scenario of scenarios) {
    if (scenario.ipFamily === 'IPv6') continue;
    const found = await faults({ harness, scenario }, signal);
    broken.push(...found.map((fault) => `${scenario.id} ${scenario.ipFamily}: ${fault}`));
  }
  return broken;
}
