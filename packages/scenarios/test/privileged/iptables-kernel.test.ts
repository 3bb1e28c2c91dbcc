import { seededRandom } from '@switchyard/core/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { allScenarios, backendContract, dataplaneNamed } from '../../src/index.ts';
import { iptablesHarness } from '../unit/iptables-harness.ts';
import { chosenScenarios, clauseFaults, runWithoutPackets } from './chosen-scenarios.ts';
import { KernelHarness } from './kernel-harness.ts';
import { iptablesKernel } from './kernel-subjects.ts';

const { signal } = new AbortController();
const all = allScenarios(dataplaneNamed('iptables'));

/**
 * Each change is a process here, and each dump three: all kinds of Services and settings once, instead of all scenarios. Packets
 * of all scenarios go through both variants in the lab.
 */
const dumped = [
  'cluster-ip',
  'dual-stack-endpoints',
  'etp-toggle',
  'health-check-node-port',
  'many-endpoints',
  'node-port-loopback',
  'one-port-three-protocols',
  'pod-interface-prefix',
  'service-type-tour',
  'session-affinity',
  'source-ranges-change',
];

/** Enough kinds of Services for every clause to bite. */
const contractScenarios = ['etp-local', 'session-affinity', 'source-ranges'];

describe('the scenarios that are chosen for the kernel', () => {
  test.each([...new Set([...dumped, ...contractScenarios])])('%s is there', (id) => {
    expect(all.filter((scenario) => scenario.id === id && scenario.runs.kinds.includes('rendering'))).not.toEqual([]);
  });
});

describe.each(['nft', 'legacy'] as const)('iptables-%s', (variant) => {
  const harness = new KernelHarness(iptablesKernel(variant));

  afterAll(() => harness[Symbol.dispose]());

  test.for(chosenScenarios(all, dumped))(
    'with failures, the kernel holds what the fake holds: $title',
    async ({ scenario }) => {
      const random = seededRandom(`kernel ${scenario.id} ${scenario.ipFamily}`);
      const real = await runWithoutPackets(scenario, harness, { failureRate: 0.1, random }, signal);
      const hasAccounting = real.dumps.some((dump) => dump.includes('nfacct'));
      const fake = await runWithoutPackets(scenario, iptablesHarness({ variant, hasAccounting }), {}, signal);
      expect(real.dumps.length).toBeGreaterThan(0);
      expect(real.dumps).toEqual(fake.dumps);
    },
  );

  test.each(backendContract)('contract: a backend $promise', async ({ faults }) => {
    const scenarios = all.filter(({ id }) => contractScenarios.includes(id));
    expect(await clauseFaults({ faults }, harness, scenarios, signal)).toEqual([]);
  });
});
