import { HostError, millis, seconds } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { runSteps, type Step } from './run-steps.ts';
import type { Shell } from './shell.ts';

const shell: Shell = {
  isDry: false,
  last: 'kind create cluster',
  said: '',
  run: () => Promise.reject(new Error('no step here runs a program')),
};

function step(name: string, run: Step['run']): Step {
  return { name, timeout: seconds(90), advice: 'look at the log', run };
}

interface Run {
  readonly printed: readonly string[];
  readonly ended: Promise<void>;
  readonly clock: ManualClock;
  readonly stop: AbortController;
}

function run(...steps: readonly Step[]): Run {
  const printed: string[] = [];
  const clock = new ManualClock();
  const stop = new AbortController();
  const ended = runSteps(steps, { shell, clock, print: (line) => void printed.push(line) }, stop.signal);
  ended.catch(() => {}); // looked at later
  return { printed, ended, clock, stop };
}

/** A step's work that ends when it is aborted, as programs do. */
function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
  );
}

describe('steps', () => {
  test('run one after the other, and print what they found', async () => {
    const { printed, ended } = run(
      step('build', async () => {}),
      step('test', async () => '3 passed'),
    );
    await ended;
    expect(printed).toEqual([
      '[1/2] build',
      '[1/2] build: done after 0.0 s',
      '[2/2] test',
      '[2/2] test: done after 0.0 s, 3 passed',
    ]);
  });

  test('end with the first that fails: its name, what came back, what to do', async () => {
    const { printed, ended } = run(
      step('build', () => Promise.reject(new HostError('x', 'no space left'))),
      step('test', async () => '3 passed'),
    );
    await expect(ended).rejects.toThrow('cannot build: no space left; after 0.0 s. What to do: look at the log');
    expect(printed).toEqual(['[1/2] build', '[1/2] build: FAILED after 0.0 s']);
  });

  test('say every 30 s that they are still at it, with their last command', async () => {
    let finish: (() => void) | undefined;
    const { printed, ended, clock } = run(step('build', () => new Promise<void>((resolve) => (finish = resolve))));
    await clock.advance(millis(61_000));
    finish?.();
    await ended;
    expect(printed).toEqual([
      '[1/1] build',
      '[1/1] build: still at it after 30.0 s: kind create cluster',
      '[1/1] build: still at it after 60.0 s: kind create cluster',
      '[1/1] build: done after 61.0 s',
    ]);
  });

  test('say how far they are, where they know', async () => {
    let finish: (() => void) | undefined;
    const work = step('test', () => new Promise<void>((resolve) => (finish = resolve)));
    const { printed, ended, clock } = run({ ...work, progress: () => '12 of 95 done' });
    await clock.advance(millis(31_000));
    finish?.();
    await ended;
    expect(printed[1]).toBe('[1/1] test: still at it after 30.0 s: 12 of 95 done');
  });

  test('are aborted when their time is over, with the command that took it', async () => {
    const { ended, clock } = run(step('build', untilAborted));
    await clock.advance(seconds(91));
    await expect(ended).rejects.toThrow(
      'cannot build: it did not end within 90 s; the last command was: kind create cluster; after 90.0 s. What to do: look at the log',
    );
  });

  test("reject with the abort's reason, and none begins after it", async () => {
    const { printed, ended, stop } = run(
      step('build', untilAborted),
      step('test', async () => {}),
    );
    stop.abort(new Error('stopped by SIGINT'));
    await expect(ended).rejects.toThrow(/^stopped by SIGINT$/);
    expect(printed).toEqual(['[1/2] build']);
  });
});
