import { expandStates, type Sequence } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { TableApplier } from '../../src/run-on-backend.ts';
import {
  allScenarios,
  type BackendHarness,
  familiesOf,
  flowOnKernel,
  flowOnTable,
  healthOnTable,
  type Scenario,
  ScenarioTables,
  type StepResult,
  dataplanes,
} from '../../src/index.ts';
import { clustersOf, type Look } from '../unit/cluster-specs.ts';
import { harnesses } from '../unit/harnesses.ts';

const { signal } = new AbortController();

/** Sees to it that what must hold in a cluster holds each time a sequence passes through it. */
type Seeing = (sequence: Sequence, looksAt: (cluster: object) => readonly Look[]) => Promise<readonly StepResult[]>;

async function check(scenario: Scenario, seeing: Seeing): Promise<void> {
  const looksByCluster = clustersOf(scenario);
  const wrong: string[] = [];
  let looks = 0;
  for (const sequence of expandStates([...looksByCluster.keys()])) {
    const results = await seeing(sequence, (cluster) => looksByCluster.get(cluster) ?? []);
    looks += results.length;
    for (const { line, step, expected, observed } of results.filter(({ isAsExpected }) => !isAsExpected)) {
      wrong.push(`${scenario.id}.yaml:${line}, ${sequence.name}: ${step}: ${observed} instead of ${expected}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(looks, 'at least as often as the scenario itself looks').toBeGreaterThan(0);
}

/** A scenario under another order of events holds as it is written: what must happen depends on the state alone. */
describe.each(dataplanes)('the table ($name), states reversed, squashed, doubled, emptied', (dataplane) => {
  const runs = allScenarios(dataplane).map((scenario) => ({ title: `${scenario.id} ${scenario.ipFamily}`, scenario }));

  test.for(runs)('$title', async ({ scenario }, { skip }) => {
    skip(!scenario.runs.kinds.includes('table'), scenario.runs.because);
    await check(scenario, async ({ steps }, looksAt) => {
      const all = new ScenarioTables(scenario);
      return steps.flatMap(({ batch, cluster }) => {
        const tables = all.deliver(batch);
        return looksAt(cluster).map((look) =>
          look.kind === 'flow' ? flowOnTable(scenario, tables, look) : healthOnTable(tables, look),
        );
      });
    });
  });
});

describe.each(harnesses)('the rendering ($name), states reversed, squashed, doubled, emptied', (harness) => {
  const runs = allScenarios(harness.dataplane).map((scenario) => ({
    title: `${scenario.id} ${scenario.ipFamily}`,
    scenario,
  }));

  test.for(runs)('$title', { timeout: 60_000 }, async ({ scenario }, { skip }) => {
    skip(!scenario.runs.kinds.includes('rendering'), scenario.runs.because);
    const dumps = new Map<object, string>();
    await check(scenario, (sequence, looksAt) => onKernel({ scenario, harness, dumps }, sequence, looksAt));
  });
});

interface KernelRun {
  readonly scenario: Scenario;
  readonly harness: BackendHarness;
  /** The first dump of each cluster: all others must equal it. */
  readonly dumps: Map<object, string>;
}

async function onKernel(
  { scenario, harness, dumps }: KernelRun,
  { name, steps }: Sequence,
  looksAt: (cluster: object) => readonly Look[],
): Promise<readonly StepResult[]> {
  const kernel = harness.createKernel();
  const all = new ScenarioTables(scenario);
  const backends = await Promise.all(
    familiesOf(scenario).map(async (family) => {
      const backend = await kernel.open(family, signal);
      return { family, backend, applier: new TableApplier(backend) };
    }),
  );
  const results: StepResult[] = [];
  for (const { batch, cluster } of steps) {
    const tables = all.deliver(batch);
    const texts: string[] = [];
    for (const { family, backend, applier } of backends) {
      await applier.apply(tables.get(family)!, signal);
      texts.push(await backend.dump(signal));
    }
    const looks = looksAt(cluster);
    if (looks.length > 0) expect(texts.join(''), name).toBe(dumps.get(cluster) ?? texts.join(''));
    dumps.set(cluster, dumps.get(cluster) ?? texts.join(''));
    const flows = looks.filter((look) => look.kind === 'flow');
    results.push(...flows.map((flow) => flowOnKernel(scenario, kernel, flow)));
  }
  return results;
}
