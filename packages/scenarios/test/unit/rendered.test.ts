import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { seededRandom } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import {
  allScenarios,
  type BackendHarness,
  type BackendResult,
  compareRuns,
  disagreementText,
  runOnBackend,
  runOnTable,
  type Scenario,
  dataplaneNamed,
} from '../../src/index.ts';
import { dumpText } from './dump-text.ts';
import { ebpfHarness } from './ebpf-harness.ts';
import { harnesses } from './harnesses.ts';
import { iptablesHarness } from './iptables-harness.ts';
import { nftablesHarness } from './nftables-harness.ts';

const { signal } = new AbortController();
const titled = (scenario: Scenario): { readonly title: string; readonly scenario: Scenario } => ({
  title: `${scenario.id} ${scenario.ipFamily}: ${scenario.name}`,
  scenario,
});

// Golden files are written anew with `vitest run -u`; in CI a difference, or a golden that is not there, fails.
const goldens = fileURLToPath(new URL('../golden/', import.meta.url));
/** Scenarios whose dumps are golden files, in IPv4. Together they show every kind of frontend, policy and rule. */
const exampleIds: ReadonlySet<string> = new Set([
  'cluster-ip',
  'dual-stack-policies',
  'etp-local',
  'external-ip',
  'itp-local',
  'masquerade-all',
  'node-port-addresses',
  'one-port-three-protocols',
  'service-type-tour',
  'session-affinity',
  'source-ranges',
  'terminating-fallback-local',
]);

describe.each(harnesses)('the rendering: what $name renders does what every scenario says', (harness) => {
  const scenarios = allScenarios(harness.dataplane);
  const runs = scenarios.map(titled);
  const counts = new Map<string, string>();

  test.for(runs)('$title', async ({ scenario }, { skip }) => {
    skip(!isRendered(scenario), scenario.runs.because);
    const quiet = await runOnBackend(scenario, harness, {}, signal);
    expect(disagreementText(compareRuns(scenario, [runOnTable(scenario), quiet]))).toBe('');
    const title = `${scenario.id} ${scenario.ipFamily}`;
    counts.set(title, `${title}: ${quiet.writes.map(({ writes }) => writes).join(' ')}`);
  });

  test.for(runs)('one transaction in ten fails: $title', async ({ scenario }, { skip }) => {
    skip(!isRendered(scenario), scenario.runs.because);
    const random = seededRandom(`${scenario.id} ${scenario.ipFamily}`);
    const quiet = await runOnBackend(scenario, harness, {}, signal);
    const rough = await runOnBackend(scenario, harness, { failureRate: 0.1, random }, signal);
    expect(disagreementText(compareRuns(scenario, [runOnTable(scenario), rough]))).toBe('');
    expect(rough.dumps, 'failures leave no trace').toEqual(quiet.dumps);
  });

  test('element writes of each change are as pinned', async () => {
    const lines = [...counts.values()].map((line) => `${line}\n`).join('');
    await expect(lines).toMatchFileSnapshot(`${goldens}writes-${harness.name}.txt`);
  });

  const examples = scenarios.filter(
    (scenario) => isRendered(scenario) && scenario.ipFamily === 'IPv4' && exampleIds.has(scenario.id),
  );

  test.for(examples.map(titled))('golden dump: $title', async ({ scenario }) => {
    const dump = dumpText(harness, await runOnBackend(scenario, harness, {}, signal));
    await expect(dump).toMatchFileSnapshot(`${goldens}${harness.name}/${scenario.id}.txt`);
  });

  test('every golden dump belongs to an example', () => {
    expect(readdirSync(`${goldens}${harness.name}`).sort()).toEqual(examples.map(({ id }) => `${id}.txt`).sort());
  });
});

describe('both variants of iptables', () => {
  const [nft, legacy] = (['nft', 'legacy'] as const).map((variant) =>
    iptablesHarness({ variant, hasAccounting: true }),
  );

  test.for(allScenarios(dataplaneNamed('iptables')).filter(isRendered).map(titled))(
    'get the same rules: $title',
    async ({ scenario }) => {
      const run = (harness: BackendHarness): Promise<BackendResult> => runOnBackend(scenario, harness, {}, signal);
      expect(await run(legacy!)).toEqual(await run(nft!));
    },
  );
});

describe('eBPF with rules of nftables for what comes from outside', () => {
  const nftables = allScenarios(dataplaneNamed('nftables'));
  const twinOf = ({ id, ipFamily }: Scenario): Scenario | undefined =>
    nftables.find((one) => one.id === id && one.ipFamily === ipFamily);
  const run = (scenario: Scenario, harness: BackendHarness): Promise<BackendResult> =>
    runOnBackend(scenario, harness, {}, signal);

  test.for(allScenarios(dataplaneNamed('ebpf')).filter(isRendered).map(titled))(
    'does what the scenario says, with the maps of eBPF and the rules of nftables: $title',
    async ({ scenario }, { skip }) => {
      // Whole Services are rules here, so what the fake of nftables cannot hold is left out.
      const twin = twinOf(scenario);
      skip(twin === undefined || !isRendered(twin), twin?.runs.because);
      const both = await run(scenario, ebpfHarness('nftables'));
      expect(disagreementText(compareRuns(scenario, [runOnTable(scenario), both]))).toBe('');
      const [programs, rules] = [await run(scenario, ebpfHarness('tc')), await run(scenario, nftablesHarness)];
      expect(both.dumps.map(linesOfMaps)).toEqual(programs.dumps.map(linesOfMaps));
      expect(both.dumps.map(linesOfRules)).toEqual(rules.dumps.map(linesOfRules));
    },
  );
});

/** Contents of maps, which no nftables rule states in these words. */
const ofMaps = /^(?:endpoint|guard|source range|affinity|frontend .*: pod )/;

function linesOfMaps(dump: string): readonly string[] {
  return dump.split('\n').filter((line) => ofMaps.test(line));
}

function linesOfRules(dump: string): readonly string[] {
  return dump.split('\n').filter((line) => line !== '' && !ofMaps.test(line));
}

function isRendered({ runs }: Scenario): boolean {
  return runs.kinds.includes('rendering');
}
