import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import {
  allScenarios,
  type BackendHarness,
  compareRuns,
  disagreementText,
  runOnBackend,
  runOnTable,
  type Scenario,
} from '../../src/index.ts';
import { describeFaults, describeVariants, titled } from './describe-rendered.ts';
import { dumpText } from './dump-text.ts';
import { harnesses } from './harnesses.ts';
import { excessWrites } from './most-writes.ts';
import { quietRun } from './quiet-run.ts';

const { signal } = new AbortController();

// Golden files are written anew with `vitest run -u`; in CI a difference, or a golden that is not there, fails.
const goldens = fileURLToPath(new URL('../golden/', import.meta.url));
/** Scenarios whose dumps are golden files, in IPv4. Together they show every kind of frontend, policy and rule. */
const exampleIds: ReadonlySet<string> = new Set([
  'cluster-ip',
  'dual-stack-policies',
  'external-ip',
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

  test.for(runs)('$title', async ({ scenario }, { skip }) => {
    skip(!isRendered(scenario), scenario.runs.because);
    const quiet = await quietRun(scenario, harness);
    expect(disagreementText(compareRuns(scenario, [runOnTable(scenario), quiet]))).toBe('');
    expect(excessWrites(harness, quiet)).toEqual([]);
  });

  test('a backend that writes everything again at each change exceeds the limit', async () => {
    const scenario = scenarios.find(({ id }) => id === 'many-endpoints');
    const result = await runOnBackend(scenario!, rewriting(harness), {}, signal);
    expect(excessWrites(harness, result)).not.toEqual([]);
  });

  const examples = scenarios.filter(
    (scenario) => isRendered(scenario) && scenario.ipFamily === 'IPv4' && exampleIds.has(scenario.id),
  );

  test.for(examples.map(titled))('golden dump: $title', async ({ scenario }) => {
    const dump = dumpText(harness, await quietRun(scenario, harness));
    await expect(dump).toMatchFileSnapshot(`${goldens}${harness.name}/${scenario.id}.txt`);
  });

  test('every golden dump belongs to an example', () => {
    expect(readdirSync(`${goldens}${harness.name}`).sort()).toEqual(examples.map(({ id }) => `${id}.txt`).sort());
  });
});

describeFaults(harnesses, 'first');
describeVariants('first');

/** Backends that clean up and apply in full each time. */
function rewriting(harness: BackendHarness): BackendHarness {
  return {
    ...harness,
    createKernel: () => {
      const kernel = harness.createKernel();
      return {
        ...kernel,
        open: async (ipFamily, openSignal) => {
          const backend = await kernel.open(ipFamily, openSignal);
          const { name, capabilities, observers } = backend;
          return {
            name,
            ipFamily,
            capabilities,
            observers,
            apply: async ({ table }, given) => {
              await backend.cleanup(given);
              return backend.apply({ table, scope: { kind: 'full' } }, given);
            },
            cleanup: (given) => backend.cleanup(given),
            dump: (given) => backend.dump(given),
            [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
          };
        },
      };
    },
  };
}

function isRendered({ runs }: Scenario): boolean {
  return runs.kinds.includes('rendering');
}
