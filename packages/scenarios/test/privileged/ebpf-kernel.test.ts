import { seededRandom } from '@switchyard/core/testing';
import { findCgroupObstacle } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { allScenarios, backendContract, dataplaneNamed } from '../../src/index.ts';
import { ebpfHarness } from '../unit/ebpf-harness.ts';
import { ebpfKernel } from './ebpf-subject.ts';
import { chosenScenarios, clauseFaults, runWithoutPackets } from './chosen-scenarios.ts';
import { KernelHarness } from './kernel-harness.ts';

const { signal } = new AbortController();
const all = allScenarios(dataplaneNamed('ebpf'));
const obstacle = await findCgroupObstacle();
let harness: KernelHarness;

beforeAll(async () => {
  if (obstacle === undefined) harness = new KernelHarness(await ebpfKernel());
});
afterAll(() => {
  if (obstacle === undefined) harness[Symbol.dispose]();
});

/** All kinds of Services and settings once: programs are loaded for each. Packets of all scenarios go through the lab. */
const dumped = [
  'dual-stack-endpoints',
  'etp-toggle',
  'many-endpoints',
  'node-port-loopback',
  'one-port-three-protocols',
  'service-type-tour',
  'source-ranges-change',
];

/** Enough kinds of Services for every clause to bite; rules carry a part of one of them. */
const contractScenarios = ['etp-local', 'session-affinity', 'source-ranges'];

test.each([...new Set([...dumped, ...contractScenarios])])('the scenario %s, chosen for the kernel, is there', (id) => {
  expect(all.filter((scenario) => scenario.id === id && scenario.runs.kinds.includes('rendering'))).not.toEqual([]);
});

test.for(chosenScenarios(all, dumped))(
  'with failures, the kernel holds what the fake holds: $title',
  async ({ scenario }, { skip }) => {
    skip(obstacle !== undefined, obstacle);
    const random = seededRandom(`kernel ${scenario.id} ${scenario.ipFamily}`);
    const real = await runWithoutPackets(scenario, harness, { failureRate: 0.1, random }, signal);
    const fake = await runWithoutPackets(scenario, ebpfHarness('tc'), {}, signal);
    expect(real.dumps.length).toBeGreaterThan(0);
    expect(real.dumps).toEqual(fake.dumps);
  },
);

describe('contract over the real kernel: a backend (ebpf) …', () => {
  test.for(backendContract)('$promise', async ({ faults }, { skip }) => {
    skip(obstacle !== undefined, obstacle);
    const scenarios = all.filter(({ id }) => contractScenarios.includes(id));
    expect(await clauseFaults({ faults }, harness, scenarios, signal)).toEqual([]);
  });
});
