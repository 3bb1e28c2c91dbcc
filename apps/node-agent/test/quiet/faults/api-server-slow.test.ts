import { millis, seconds, systemClock } from '@switchyard/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readLog } from '../../privileged/agent-log.ts';
import { type FaultLab, startFaultLab } from './fault-lab.ts';

const { signal } = new AbortController();
/** Only the agents' requests: the lab's own controllers have no token. */
const ofAgents = { authorization: /lab-token/ };
let lab: FaultLab;

beforeAll(async () => {
  lab = await startFaultLab('fslow');
});

afterAll(async () => {
  await lab?.[Symbol.asyncDispose]();
});

test('an API server whose bytes trickle in 2 s late costs no request; changes arrive late, and a new agent starts', async () => {
  const { faults } = lab.cluster.server;
  await lab.underLoad(async () => {
    const slow = faults.inject({ kind: 'slow', latency: seconds(2), bytes: 100, pause: millis(10) }, ofAgents);
    faults.endWatches('reset');
    await lab.replaceAgent(0, { args: ['-v=4'] }).catch(() => expect.fail('a slow API server ends no wait'));
    await lab.setEndpoints('d');
    const took = await lab.awaitAnswerOf('d');
    expect(took).toBeGreaterThan(1900);
    expect(took).toBeLessThan(6000);
    slow[Symbol.dispose]();
  });
});

test('an API server that answers each request 3 s late costs no request', async () => {
  const { faults } = lab.cluster.server;
  await lab.underLoad(async () => {
    const slow = faults.inject({ kind: 'delay', duration: seconds(3) }, ofAgents);
    faults.endWatches('clean');
    await lab.setEndpoints('a', 'b');
    await lab.setEndpoints('b');
    const took = await lab.awaitAnswerOf('b');
    expect(took).toBeGreaterThan(2500);
    expect(took).toBeLessThan(8000);
    slow[Symbol.dispose]();
  });
});

test('an API server that accepts and says nothing, until it is killed and another takes its place, costs no request', async () => {
  const { faults } = lab.cluster.server;
  await lab.underLoad(async () => {
    const silent = faults.inject({ kind: 'stall' }, ofAgents);
    faults.endWatches('reset');
    await systemClock.sleep(seconds(1), signal);
    await lab.setEndpoints('d');
    await systemClock.sleep(seconds(5), signal);
    silent[Symbol.dispose]();
    faults.stop(6443)[Symbol.dispose]();
    expect(await lab.awaitAnswerOf('d')).toBeLessThan(3000);
  });
});

test('an agent says once per resource that it has lost such a server', async () => {
  const lost = (await readLog(lab.agents[1])).filter(({ msg }) => msg.startsWith('lost the API server'));
  expect(lost.length).toBeGreaterThanOrEqual(4);
  expect(lost.length).toBeLessThanOrEqual(8); // in the first and in the third test
});
