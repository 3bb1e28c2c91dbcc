import { type Clock, HostError, messageOf, type Millis, millis } from '@switchyard/core';
import type { Shell } from './shell.ts';

export interface Step {
  /** Name of the step, such as `create the cluster`. */
  readonly name: string;
  /** Time after which the step is aborted. */
  readonly timeout: Millis;
  /** Advice after a failure; a sentence without its full stop. */
  readonly advice: string;
  /** Progress of the step, for its reader; absent: the last line of its last command. */
  progress?(): string;
  /** Rejects when the step failed. What it returns is shown behind the step's name when it is done. */
  run(signal: AbortSignal): Promise<string | void>;
}

export interface StepRunner {
  readonly shell: Shell;
  readonly clock: Clock;
  readonly print: (line: string) => void;
}

/** Interval of progress lines of a running step. */
const reportInterval: Millis = millis(30_000);

/**
 * Runs steps one after the other and prints their starts, progress, ends and durations. Rejects with the first failure, whose message
 * has the step, its duration, the error, and advice.
 */
export async function runSteps(steps: readonly Step[], runner: StepRunner, signal: AbortSignal): Promise<void> {
  for (const [index, step] of steps.entries()) {
    signal.throwIfAborted();
    await runStep(step, `[${index + 1}/${steps.length}]`, { ...runner, signal });
  }
}

async function runStep(
  step: Step,
  number: string,
  { shell, clock, print, signal }: StepRunner & { readonly signal: AbortSignal },
): Promise<void> {
  const started = clock.monotonic();
  const elapsed = (): string => `${((clock.monotonic() - started) / 1000).toFixed(1)} s`;
  print(`${number} ${step.name}`);
  if (shell.isDry) return void (await step.run(signal));
  const done = new AbortController();
  const limit = new AbortController();
  const expiry = new HostError('e2e.timeout', `it did not end within ${step.timeout / 1000} s`);
  const expire = async (): Promise<void> => {
    await clock.sleep(step.timeout, done.signal);
    limit.abort(expiry);
  };
  const report = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(reportInterval, done.signal);
      const progress = step.progress?.() ?? (shell.said || shell.last);
      print(`${number} ${step.name}: still at it after ${elapsed()}: ${progress}`);
    }
  };
  // Both end when the step does.
  const waits = [expire, report].map((wait) => wait().catch(() => undefined));
  try {
    const note = await step.run(AbortSignal.any([signal, limit.signal]));
    print(`${number} ${step.name}: done after ${elapsed()}${typeof note === 'string' ? `, ${note}` : ''}`);
  } catch (error) {
    signal.throwIfAborted();
    print(`${number} ${step.name}: FAILED after ${elapsed()}`);
    const cause = limit.signal.aborted ? limit.signal.reason : error;
    const last = limit.signal.aborted ? `; the last command was: ${shell.last}` : '';
    const message = `cannot ${step.name}: ${messageOf(cause)}${last}; after ${elapsed()}. What to do: ${step.advice}`;
    throw new HostError('e2e.step', message, { cause });
  } finally {
    done.abort();
    await Promise.all(waits);
  }
}

/**
 * How a cell ended. `failed`: tests found a fault. `error`: the cluster failed, nothing is known of the proxy. `skipped`: it cannot run on this
 * machine.
 */
type CellStatus = 'passed' | 'failed' | 'skipped' | 'error';

export interface CellOutcome {
  readonly id: string;
  readonly status: CellStatus;
  /** Failures, or why it was skipped, or what went wrong; one line each. Empty when it passed. */
  readonly because: readonly string[];
  /** Counts and tests that skipped themselves. */
  readonly notes: readonly string[];
}

/** Findings of a cell's tests, which steps add to. */
export interface Findings {
  /** One line each, of cases and tests that failed: the proxy is at fault, or the test. */
  readonly failures: string[];
  /** Counts and skips, for the summary. */
  readonly notes: string[];
}

/** Outcome of a cell that was run: first its problems, then the findings of its tests. */
export function outcomeOf(id: string, problems: readonly string[], { failures, notes }: Findings): CellOutcome {
  const status = problems.length > 0 ? 'error' : failures.length > 0 ? 'failed' : 'passed';
  return { id, status, because: [...problems, ...failures], notes };
}

/** Exit status, like the conformance runner's: 0 all passed or skipped with reasons, 1 a test failed, 3 a cluster failed, which wins. */
export function exitStatus(outcomes: readonly Pick<CellOutcome, 'status'>[]): 0 | 1 | 3 {
  if (outcomes.some(({ status }) => status === 'error')) return 3;
  return outcomes.some(({ status }) => status === 'failed') ? 1 : 0;
}

/** The end of a call's output: one line per cell, and why. */
export function summaryLines(outcomes: readonly CellOutcome[]): readonly string[] {
  const counts = (['passed', 'failed', 'skipped', 'error'] as const)
    .map((status) => [outcomes.filter((one) => one.status === status).length, status] as const)
    .filter(([count]) => count > 0)
    .map(([count, status]) => `${count} ${status}`);
  const lines = outcomes.flatMap(({ id, status, because, notes }) => [
    `${status.padEnd(8)} ${id}`,
    ...because.map((line) => `           ${line}`),
    ...notes.map((line) => `           (${line})`),
  ]);
  return [...lines, `e2e: ${counts.join(', ')}`];
}
