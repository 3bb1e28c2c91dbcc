import { afterAll, describe, expect, test } from 'vitest';
import { allScenarios, backendContract, runOnBackend, type Scenario } from '../../src/index.ts';
import { nftablesHarness } from '../unit/nftables-harness.ts';
import { seededRandom } from '../unit/seeded-random.ts';
import { KernelHarness } from './kernel-harness.ts';

const { signal } = new AbortController();
const harness = new KernelHarness();
const scenarios = allScenarios().filter(({ altitudes }) => altitudes.run.includes('rendered'));
const runs = scenarios.map((scenario) => ({ title: `${scenario.id} ${scenario.ipFamily}`, scenario }));

afterAll(() => harness[Symbol.dispose]());

/** Elements only: what becomes of packets is altitude 3's business. */
function withoutFlows(scenario: Scenario): Scenario {
  return { ...scenario, steps: scenario.steps.filter(({ kind }) => kind !== 'flow') };
}

describe('over netlink the real kernel holds what the fake holds', () => {
  test.for(runs)('one transaction in ten fails: $title', async ({ scenario }) => {
    const elements = withoutFlows(scenario);
    const random = seededRandom(`kernel ${scenario.id} ${scenario.ipFamily}`);
    const [fake, real] = [
      await runOnBackend(elements, nftablesHarness, {}, signal),
      await runOnBackend(elements, harness, { failureRate: 0.1, random }, signal),
    ];
    expect(real.dumps.length).toBeGreaterThan(0);
    expect(real.dumps).toEqual(fake.dumps);
  });
});

/** Enough kinds of Services for every clause to bite, few enough for a kernel that is loaded anew each time. */
const contractScenarios = [
  'cluster-ip',
  'etp-local',
  'dual-stack-endpoints',
  'hairpin',
  'source-ranges',
  'cluster-ip-moves',
];

describe('contract over netlink and the real kernel: a backend …', () => {
  const chosen = scenarios.filter(({ id }) => contractScenarios.includes(id));

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
