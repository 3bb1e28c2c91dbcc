import { millis, systemClock } from '@switchyard/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readLog } from '../../privileged/agent-log.ts';
import { type FaultLab, type PodName, startFaultLab } from './fault-lab.ts';

const { signal } = new AbortController();
let lab: FaultLab;

beforeAll(async () => {
  lab = await startFaultLab('fkilled');
});

afterAll(async () => {
  await lab?.[Symbol.asyncDispose]();
});

/** Moves the Service between its pods, as a rollout without end, until stopped. */
async function roll(stop: AbortSignal): Promise<number> {
  const steps: readonly (readonly PodName[])[] = [
    ['a', 'c'],
    ['b', 'c'],
    ['b', 'd'],
    ['a', 'd'],
  ];
  let rounds = 0;
  for (; !stop.aborted; rounds++) {
    await lab.setEndpoints(...(steps[rounds % steps.length] ?? []));
    await systemClock.sleep(millis(100), signal);
  }
  return rounds;
}

test('an agent that is killed and started again, five times, during a rollout loses no request and catches up', async () => {
  await lab.underLoad(async () => {
    const stop = new AbortController();
    const rolling = roll(stop.signal);
    for (let round = 0; round < 5; round++) {
      process.kill(lab.agents[0].pid, 'SIGKILL');
      expect(await lab.agents[0].ended).toBe('SIGKILL');
      await systemClock.sleep(millis(500), signal); // the other node's agent goes on, this one's rules grow old
      await lab.replaceAgent(0);
    }
    stop.abort();
    expect(await rolling).toBeGreaterThan(20);
    await lab.setEndpoints('d');
    expect(await lab.awaitAnswerOf('d')).toBeLessThan(1000);
  });
  expect((await readLog(lab.agents[0])).filter(({ level }) => level === 'error' || level === 'text')).toEqual([]);
});
