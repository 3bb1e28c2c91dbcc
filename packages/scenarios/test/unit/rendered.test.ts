import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { allScenarios, compareAltitudes, disagreementText, runOnBackend, runOnTable } from '../../src/index.ts';
import { nftablesHarness } from './nftables-harness.ts';
import { seededRandom } from './seeded-random.ts';

const { signal } = new AbortController();
const harnesses = [nftablesHarness];
const scenarios = allScenarios();
/** Set to write the golden files anew; the diff is for the reviewer. */
const isUpdate = process.env['UPDATE_GOLDENS'] !== undefined;

type Pinned = Readonly<Record<string, readonly string[]>>;

describe.each(harnesses)('altitude 2: what $name renders does what every scenario says', (harness) => {
  const file = new URL(`../golden/writes-${harness.name}.json`, import.meta.url);
  const pinned = isUpdate ? {} : (JSON.parse(readFileSync(file, 'utf8')) as Pinned);
  const counted: Record<string, readonly string[]> = {};

  const runs = scenarios.map((scenario) => ({
    title: `${scenario.id} ${scenario.ipFamily}: ${scenario.name}`,
    scenario,
  }));

  test.for(runs)('$title', async ({ scenario }, { skip }) => {
    skip(!scenario.altitudes.run.includes('rendered'), scenario.altitudes.because);
    const quiet = await runOnBackend(scenario, harness, {}, signal);
    const rough = await runOnBackend(
      scenario,
      harness,
      { failureRate: 0.1, random: seededRandom(scenario.id) },
      signal,
    );
    expect(disagreementText(compareAltitudes(scenario, [runOnTable(scenario), quiet]))).toBe('');
    expect(disagreementText(compareAltitudes(scenario, [runOnTable(scenario), rough]))).toBe('');
    expect(rough.dumps, 'failures leave no trace').toEqual(quiet.dumps);
    const name = `${scenario.id} ${scenario.ipFamily}`;
    counted[name] = quiet.writes.map(({ at, writes }) => `${at}: ${writes}`);
    if (!isUpdate)
      expect(counted[name], 'element writes by line; UPDATE_GOLDENS=1 pins new ones').toEqual(pinned[name]);
  });

  afterAll(() => {
    if (!isUpdate) return;
    mkdirSync(new URL('.', file), { recursive: true });
    writeFileSync(file, `${JSON.stringify(counted, undefined, 2)}\n`);
  });

  test('every pinned count belongs to a scenario', () => {
    const names = new Set(scenarios.map(({ id, ipFamily }) => `${id} ${ipFamily}`));
    expect(Object.keys(pinned).filter((name) => !names.has(name))).toEqual([]);
  });
});
