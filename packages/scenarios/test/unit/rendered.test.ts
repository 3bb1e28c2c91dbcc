import { seededRandom } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import {
  allScenarios,
  type BackendHarness,
  type BackendResult,
  compareAltitudes,
  disagreementText,
  runOnBackend,
  runOnTable,
  type Scenario,
} from '../../src/index.ts';
import { dumpText } from './dump-text.ts';
import { golden, goldensOf } from './golden.ts';
import { harnesses } from './harnesses.ts';
import { iptablesHarness } from './iptables-harness.ts';

const { signal } = new AbortController();
const titled = (scenario: Scenario): { readonly title: string; readonly scenario: Scenario } => ({
  title: `${scenario.id} ${scenario.ipFamily}: ${scenario.name}`,
  scenario,
});

describe.each(harnesses)('altitude 2: what $name renders does what every scenario says', (harness) => {
  const scenarios = allScenarios(harness.dataplane);
  const runs = scenarios.map(titled);
  const counts: Record<string, readonly string[]> = {};

  test.for(runs)('$title', async ({ scenario }, { skip }) => {
    skip(!isRendered(scenario), scenario.altitudes.because);
    const quiet = await runOnBackend(scenario, harness, {}, signal);
    expect(disagreementText(compareAltitudes(scenario, [runOnTable(scenario), quiet]))).toBe('');
    counts[`${scenario.id} ${scenario.ipFamily}`] = quiet.writes.map(({ at, writes }) => `${at}: ${writes}`);
    const dump = dumpText(harness, quiet);
    expect(dump, 'the kernel after each change; UPDATE_GOLDENS=1 pins it').toBe(
      golden(dumpFile(harness, scenario), dump),
    );
  });

  test.for(runs)('one transaction in ten fails: $title', async ({ scenario }, { skip }) => {
    skip(!isRendered(scenario), scenario.altitudes.because);
    const random = seededRandom(`${scenario.id} ${scenario.ipFamily}`);
    const quiet = await runOnBackend(scenario, harness, {}, signal);
    const rough = await runOnBackend(scenario, harness, { failureRate: 0.1, random }, signal);
    expect(disagreementText(compareAltitudes(scenario, [runOnTable(scenario), rough]))).toBe('');
    expect(rough.dumps, 'failures leave no trace').toEqual(quiet.dumps);
  });

  test('element writes of each change, by line; UPDATE_GOLDENS=1 pins them', () => {
    const text = `${JSON.stringify(counts, undefined, 2)}\n`;
    expect(text).toBe(golden(`writes-${harness.name}.json`, text));
  });

  test('every golden file belongs to a scenario', () => {
    const known = new Set(scenarios.filter(isRendered).map((scenario) => dumpFile(harness, scenario)));
    expect(goldensOf(harness.name).filter((file) => !known.has(file))).toEqual([]);
  });
});

describe('both variants of iptables', () => {
  const [nft, legacy] = (['nft', 'legacy'] as const).map((variant) =>
    iptablesHarness({ variant, hasAccounting: true }),
  );

  test.for(allScenarios('iptables').filter(isRendered).map(titled))(
    'get the same rules: $title',
    async ({ scenario }) => {
      const run = (harness: BackendHarness): Promise<BackendResult> => runOnBackend(scenario, harness, {}, signal);
      expect(await run(legacy!)).toEqual(await run(nft!));
    },
  );
});

function isRendered({ altitudes }: Scenario): boolean {
  return altitudes.run.includes('rendered');
}

function dumpFile({ name }: BackendHarness, { id, ipFamily }: Scenario): string {
  return `${name}/${id}-${ipFamily}.txt`;
}
