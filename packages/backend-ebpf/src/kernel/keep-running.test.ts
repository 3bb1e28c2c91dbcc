import { HostError, InvariantError, seconds } from '@switchyard/core';
import { ManualClock, MemoryLogger } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { keepRunning } from '../backend.ts';

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

describe('what is kept running', () => {
  test('begins again a second after it failed, and is warned of once', async () => {
    const clock = new ManualClock();
    const logger = new MemoryLogger();
    const stop = new AbortController();
    let runs = 0;
    const run = async (signal: AbortSignal): Promise<void> => {
      runs++;
      if (runs < 4) throw new HostError('test.gone', 'gone');
      await untilAborted(signal);
    };
    const done = keepRunning([{ name: 'links', run }], { clock, logger }, stop.signal);
    for (let second = 0; second < 3; second++) await clock.advance(1000);
    expect(runs).toBe(4);
    stop.abort();
    await done;
    expect(logger.transitions).toEqual(['warn cannot follow the kernel; will be tried again every second']);
  });

  test('is warned of again when it was well for a minute', async () => {
    const clock = new ManualClock();
    const logger = new MemoryLogger();
    const stop = new AbortController();
    const run = async (signal: AbortSignal): Promise<void> => {
      await clock.sleep(seconds(60), signal);
      throw new HostError('test.gone', 'gone');
    };
    const done = keepRunning([{ name: 'links', run }], { clock, logger }, stop.signal);
    for (let second = 0; second < 125; second++) await clock.advance(1000);
    expect(logger.transitions.length).toBe(2);
    stop.abort();
    await done;
  });

  test('is not when its failure is our own', async () => {
    const broken = new InvariantError('broken');
    const run = (): Promise<void> => Promise.reject(broken);
    const surroundings = { clock: new ManualClock(), logger: new MemoryLogger() };
    await expect(keepRunning([{ name: 'x', run }], surroundings, new AbortController().signal)).rejects.toBe(broken);
  });
});
