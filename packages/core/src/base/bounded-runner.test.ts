import { describe, expect, onTestFinished, test } from 'vitest';
import { ManualClock } from '../testing/manual-clock.ts';
import { millis } from './time.ts';
import { BoundedRunner, type BoundedRunnerOptions, type RunOutcome } from './bounded-runner.ts';

interface Bench {
  readonly clock: ManualClock;
  readonly runner: BoundedRunner;
  /** `reason@time`, in the order of the starts. */
  readonly runs: readonly string[];
  readonly ended: Promise<void>;
  stop(): void;
}

/** A runner whose runs take `duration` and end as `outcomes` says, then well. */
function start(options: Partial<BoundedRunnerOptions> & { duration?: number; outcomes?: RunOutcome[] } = {}): Bench {
  const clock = new ManualClock();
  const runs: string[] = [];
  const outcomes = [...(options.outcomes ?? [])];
  const runner = new BoundedRunner({
    clock,
    minGap: millis(1000),
    resyncInterval: millis(3_600_000),
    retry: { first: millis(2000), max: millis(8000) },
    run: async (reason, signal) => {
      runs.push(`${reason}@${clock.monotonic()}`);
      if (options.duration !== undefined) await clock.sleep(millis(options.duration), signal);
      return outcomes.shift() ?? { status: 'done' };
    },
    ...options,
  });
  const controller = new AbortController();
  const ended = runner.run(controller.signal);
  onTestFinished(async () => {
    controller.abort();
    await ended.catch(() => undefined);
  });
  return { clock, runner, runs, ended, stop: () => controller.abort(new Error('stop')) };
}

const failed: RunOutcome = { status: 'retry' };

describe('BoundedRunner', () => {
  test('an idle runner does nothing', async () => {
    const bench = start();
    await bench.clock.advance(3_599_999);
    expect(bench.runs).toEqual([]);
  });

  test('the first change after idle runs at once', async () => {
    const bench = start();
    await bench.clock.advance(5000);
    bench.runner.poke();
    await bench.clock.advance(0);
    expect(bench.runs).toEqual(['change@5000']);
  });

  test('changes within the gap run once, when it has passed since the end of the last run', async () => {
    const bench = start({ duration: 300 });
    bench.runner.poke();
    await bench.clock.advance(400);
    bench.runner.poke();
    bench.runner.poke();
    await bench.clock.advance(10_000);
    expect(bench.runs).toEqual(['change@0', 'change@1300']);
  });

  test('the gap may change at any time, and a shorter one counts from the next poke on', async () => {
    let gap = 3_600_000;
    const clock = new ManualClock();
    const runs: number[] = [];
    const runner = new BoundedRunner({
      clock,
      get minGap() {
        return millis(gap);
      },
      resyncInterval: millis(3_600_000),
      retry: { first: millis(1), max: millis(1) },
      run: async () => {
        runs.push(clock.monotonic());
        return { status: 'done' };
      },
    });
    const stop = new AbortController();
    const ended = runner.run(stop.signal);
    runner.poke();
    await clock.advance(0);
    runner.poke();
    await clock.advance(1000);
    gap = 50;
    runner.poke();
    await clock.advance(10);
    runner.poke();
    await clock.advance(1000);
    stop.abort();
    await ended;
    expect(runs).toEqual([0, 1000, 1050]);
  });

  test('a change during a run is not lost, and runs never overlap', async () => {
    const bench = start({ duration: 300 });
    bench.runner.poke();
    await bench.clock.advance(100);
    bench.runner.poke();
    await bench.clock.advance(10_000);
    expect(bench.runs).toEqual(['change@0', 'change@1300']);
  });

  test('with a gap of zero a change during a run follows at once', async () => {
    const bench = start({ duration: 300, minGap: millis(0) });
    bench.runner.poke();
    await bench.clock.advance(100);
    bench.runner.poke();
    await bench.clock.advance(10_000);
    expect(bench.runs).toEqual(['change@0', 'change@300']);
  });

  test('retries back off by doubling up to the maximum, and start over after a success', async () => {
    const bench = start({ outcomes: [failed, failed, failed, failed, { status: 'done' }, failed] });
    bench.runner.poke();
    await bench.clock.advance(60_000);
    bench.runner.poke();
    await bench.clock.advance(60_000);
    expect(bench.runs).toEqual([
      'change@0',
      'retry@2000',
      'retry@6000',
      'retry@14000',
      'retry@22000',
      'change@60000',
      'retry@62000',
    ]);
  });

  test('a run may say itself when to retry', async () => {
    const bench = start({ outcomes: [{ status: 'retry', after: millis(1500) }, failed] });
    bench.runner.poke();
    await bench.clock.advance(10_000);
    expect(bench.runs).toEqual(['change@0', 'retry@1500', 'retry@5500']);
  });

  test('a change after a failure does not wait for the retry, only for the gap', async () => {
    const bench = start({ outcomes: [failed] });
    bench.runner.poke();
    await bench.clock.advance(100);
    bench.runner.poke();
    await bench.clock.advance(10_000);
    expect(bench.runs).toEqual(['change@0', 'change@1000']);
  });

  test('a retry never comes before the gap has passed', async () => {
    const bench = start({ outcomes: [{ status: 'retry', after: millis(1) }] });
    bench.runner.poke();
    await bench.clock.advance(10_000);
    expect(bench.runs).toEqual(['change@0', 'retry@1000']);
  });

  test('a resync comes once per interval, counted from the end of the last one', async () => {
    const bench = start({ resyncInterval: millis(10_000), duration: 500 });
    await bench.clock.advance(25_000);
    expect(bench.runs).toEqual(['resync@10000', 'resync@20500']);
  });

  test('changes do not put the resync off', async () => {
    const bench = start({ resyncInterval: millis(10_000) });
    await bench.clock.advance(9000);
    bench.runner.poke();
    await bench.clock.advance(2000);
    expect(bench.runs).toEqual(['change@9000', 'resync@10000']);
  });

  test('a requested resync runs at once after idle', async () => {
    const bench = start();
    bench.runner.requestResync();
    await bench.clock.advance(0);
    expect(bench.runs).toEqual(['resync@0']);
  });

  test('a change and a requested resync are one run', async () => {
    const bench = start();
    bench.runner.poke();
    bench.runner.requestResync();
    await bench.clock.advance(10_000);
    expect(bench.runs).toEqual(['resync@0']);
  });

  test('stopping while idle ends the loop and leaves no timer', async () => {
    const bench = start();
    await bench.clock.advance(0);
    bench.stop();
    await bench.ended;
    expect(bench.clock.sleeping).toBe(0);
  });

  test('stopping during a run waits for it', async () => {
    let release: (() => void) | undefined;
    const bench = start({
      run: () => new Promise((resolve) => (release = () => resolve({ status: 'done' }))),
    });
    let hasEnded = false;
    void bench.ended.then(() => (hasEnded = true));
    bench.runner.poke();
    await bench.clock.advance(0);
    bench.stop();
    await bench.clock.advance(0);
    expect(hasEnded).toBe(false);
    release?.();
    await bench.ended;
  });

  test('a run that rejects because of the stop is a clean end', async () => {
    const bench = start({ duration: 5000 });
    bench.runner.poke();
    await bench.clock.advance(0);
    bench.stop();
    await expect(bench.ended).resolves.toBeUndefined();
  });

  test('a run that throws ends the loop with that error', async () => {
    const error = new Error('bug');
    const bench = start({ run: () => Promise.reject(error) });
    bench.runner.poke();
    await expect(bench.ended).rejects.toBe(error);
  });
});
