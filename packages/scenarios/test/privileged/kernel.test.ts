import { seededRandom } from '@switchyard/core/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { allScenarios, backendContract, runOnBackend, type Scenario } from '../../src/index.ts';
import { nftablesHarness } from '../unit/nftables-harness.ts';
import { KernelHarness } from './kernel-harness.ts';
import { nftablesKernel } from './kernel-subjects.ts';

const { signal } = new AbortController();
const harness = new KernelHarness(nftablesKernel);
const all = allScenarios();
const isRendered = ({ runs }: Scenario): boolean => runs.kinds.includes('rendering');
const titled = (scenario: Scenario) => ({ title: `${scenario.id} ${scenario.ipFamily}`, scenario });

afterAll(() => harness[Symbol.dispose]());

/** Elements only: runs with packets check what becomes of packets. */
function withoutFlows(scenario: Scenario): Scenario {
  return { ...scenario, steps: scenario.steps.filter(({ kind }) => kind !== 'flow') };
}

describe('over netlink the real kernel holds what the fake holds', () => {
  test.for(all.filter(isRendered).map(titled))('one transaction in ten fails: $title', async ({ scenario }) => {
    const fake = await runOnBackend(withoutFlows(scenario), nftablesHarness, {}, signal);
    const real = await runWithFailures(scenario);
    expect(real.dumps.length).toBeGreaterThan(0);
    expect(real.dumps).toEqual(fake.dumps);
  });
});

describe('what the fake cannot hold ends in the real kernel as it would without failures', () => {
  // Not those that are about the other dataplane and run nowhere here.
  const others = all.filter((scenario) => !isRendered(scenario) && scenario.runs.kinds.length > 0);

  test('session affinity is among it', () => {
    expect(others.map(({ id }) => id)).toContain('session-affinity');
  });

  test.for(others.map(titled))('one transaction in ten fails: $title', async ({ scenario }) => {
    const quiet = await runOnBackend(withoutFlows(scenario), harness, {}, signal);
    const rough = await runWithFailures(scenario);
    expect(quiet.dumps.join('')).toContain('each client keeps its own');
    expect(rough.dumps).toEqual(quiet.dumps);
  });
});

function runWithFailures(scenario: Scenario): ReturnType<typeof runOnBackend> {
  const random = seededRandom(`kernel ${scenario.id} ${scenario.ipFamily}`);
  return runOnBackend(withoutFlows(scenario), harness, { failureRate: 0.1, random }, signal);
}

/** Enough kinds of Services for every clause to bite, few enough for a kernel that is loaded anew each time. */
const contractScenarios = [
  'cluster-ip',
  'etp-local',
  'dual-stack-endpoints',
  'hairpin',
  'source-ranges',
  'cluster-ip-moves',
  'session-affinity',
];

describe('contract over netlink and the real kernel: a backend …', () => {
  const chosen = all.filter(({ id }) => contractScenarios.includes(id));

  test('is tried with every scenario that is named here', () => {
    expect(contractScenarios.filter((id) => !chosen.some((scenario) => scenario.id === id))).toEqual([]);
  });

  test.each(backendContract)('$promise', async ({ faults }) => {
    const broken: string[] = [];
    for (const scenario of chosen) {
      const found = await faults({ harness, scenario }, signal);
      broken.push(...found.map((fault) => `${scenario.id} ${scenario.ipFamily}: ${fault}`));
    }
    expect(broken).toEqual([]);
  });
});
