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
import { ebpfHarness } from './ebpf-harness.ts';
import { golden, goldensOf } from './golden.ts';
import { harnesses } from './harnesses.ts';
import { iptablesHarness } from './iptables-harness.ts';
import { nftablesHarness } from './nftables-harness.ts';

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

describe('eBPF with rules of nftables for what comes from outside', () => {
  const nftables = allScenarios('nftables');
  const twinOf = ({ id, ipFamily }: Scenario): Scenario | undefined =>
    nftables.find((one) => one.id === id && one.ipFamily === ipFamily);
  const run = (scenario: Scenario, harness: BackendHarness): Promise<BackendResult> =>
    runOnBackend(scenario, harness, {}, signal);

  test.for(allScenarios('ebpf').filter(isRendered).map(titled))(
    'does what the scenario says, with the maps of eBPF and the rules of nftables: $title',
    async ({ scenario }, { skip }) => {
      // Whole Services are rules here, so what the fake of nftables cannot hold is left out.
      const twin = twinOf(scenario);
      skip(twin === undefined || !isRendered(twin), twin?.altitudes.because);
      const both = await run(scenario, ebpfHarness('nftables'));
      expect(disagreementText(compareAltitudes(scenario, [runOnTable(scenario), both]))).toBe('');
      const [programs, rules] = [await run(scenario, ebpfHarness('tc')), await run(scenario, nftablesHarness)];
      expect(both.dumps.map(linesOfMaps)).toEqual(programs.dumps.map(linesOfMaps));
      expect(both.dumps.map(linesOfRules)).toEqual(rules.dumps.map(linesOfRules));
    },
  );
});

/** What maps hold, and no rule of nftables says in these words. */
const ofMaps = /^(?:endpoint|guard|source range|affinity|frontend .*: pod )/;

function linesOfMaps(dump: string): readonly string[] {
  return dump.split('\n').filter((line) => ofMaps.test(line));
}

function linesOfRules(dump: string): readonly string[] {
  return dump.split('\n').filter((line) => line !== '' && !ofMaps.test(line));
}

function isRendered({ altitudes }: Scenario): boolean {
  return altitudes.run.includes('rendered');
}

function dumpFile({ name }: BackendHarness, { id, ipFamily }: Scenario): string {
  return `${name}/${id}-${ipFamily}.txt`;
}
