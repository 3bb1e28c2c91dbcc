import { ApiServerError, millis, type Logger, noopLogger } from '@switchyard/core';
import { ManualClock, settle } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { KeyedRunner } from './keyed-runner.ts';

test('one key never runs twice at a time, and pokes during a run make one more run', async () => {
  const gates: (() => void)[] = [];
  let running = 0;
  await using runner = new KeyedRunner('test', { clock: new ManualClock(), log: noopLogger }, async () => {
    running += 1;
    expect(running).toBe(1);
    await new Promise<void>((resolve) => gates.push(resolve));
    running -= 1;
    return undefined;
  });
  runner.poke('a');
  await settle();
  for (let count = 0; count < 3; count++) runner.poke('a');
  gates[0]?.();
  await settle();
  gates[1]?.();
  await settle();
  expect(gates.length).toBe(2);
});

test('settle waits for a run that began after it was called', async () => {
  const gates: (() => void)[] = [];
  await using runner = new KeyedRunner('test', { clock: new ManualClock(), log: noopLogger }, async () => {
    await new Promise<void>((resolve) => gates.push(resolve));
    return undefined;
  });
  runner.poke('a');
  await settle();
  let isSettled = false;
  const settled = runner.settle('a').then(() => {
    isSettled = true;
  });
  gates[0]?.();
  await settle();
  expect([isSettled, gates.length]).toEqual([false, 2]);
  gates[1]?.();
  await settled;
});

test('a failure is retried with growing pauses, and told once; a conflict is not told', async () => {
  const clock = new ManualClock();
  const warnings: string[] = [];
  const log: Logger = { ...noopLogger, warn: (message) => warnings.push(message) };
  const runs: number[] = [];
  const errors = [conflict(), new Error('first'), new Error('second'), undefined];
  await using runner = new KeyedRunner('test', { clock, log }, async () => {
    runs.push(clock.now());
    const error = errors.shift();
    if (error !== undefined) throw error;
    return undefined;
  });
  runner.poke('a');
  await settle();
  expect([runs.length, warnings.length]).toEqual([1, 0]);
  await clock.advance(100);
  expect(runs).toEqual([0, 5, 15, 35]);
  expect(warnings.length).toBe(1);
});

test('a run can ask to be repeated, and a poke makes that superfluous', async () => {
  const clock = new ManualClock();
  const runs: number[] = [];
  await using runner = new KeyedRunner('test', { clock, log: noopLogger }, async () => {
    runs.push(clock.now());
    return runs.length < 3 ? millis(100) : undefined;
  });
  runner.poke('a');
  await clock.advance(50);
  runner.poke('a');
  await clock.advance(1000);
  expect(runs).toEqual([0, 50, 150]);
});

test('disposal aborts what runs, waits for it, and frees those who wait', async () => {
  let wasAborted = false;
  const runner = new KeyedRunner('test', { clock: new ManualClock(), log: noopLogger }, async (_key, signal) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    wasAborted = signal.aborted;
    return undefined;
  });
  const waiting = runner.settle('a');
  await settle();
  await runner[Symbol.asyncDispose]();
  await waiting;
  expect(wasAborted).toBe(true);
});

function conflict(): ApiServerError {
  return new ApiServerError('api.conflict', 'another client wrote', { isRetryable: true, status: 409 });
}
