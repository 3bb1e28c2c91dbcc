import { seconds, systemClock } from '@switchyard/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FaultLab, startFaultLab } from './fault-lab.ts';

const { signal } = new AbortController();
let lab: FaultLab;

beforeAll(async () => {
  lab = await startFaultLab('fsilent');
});

afterAll(async () => {
  await lab?.[Symbol.asyncDispose]();
});

test('requests that an API server never answers are given up after a minute, without losing one of the Service', async () => {
  const { faults } = lab.cluster.server;
  await lab.underLoad(async () => {
    const silent = faults.inject({ kind: 'stall' }, { authorization: /lab-token/ });
    faults.endWatches('reset');
    await systemClock.sleep(seconds(2), signal);
    silent[Symbol.dispose](); // those it has taken stay unanswered
    await lab.setEndpoints('d');
    const took = await lab.awaitAnswerOf('d');
    expect(took).toBeGreaterThan(50_000);
    expect(took).toBeLessThan(62_000);
  });
});
