import { millis, type Random, systemClock, UsageError } from '@switchyard/core';
import type { TestEnvironment } from '../model/test-environment.ts';
import type { ConformanceCase } from '../model/case.ts';
import type { OnProgress, RunName } from '../model/progress.ts';
import type { CaseResult, SkippedStep } from '../model/report-file.ts';
import { fitToEnvironment } from './fit-to-environment.ts';
import type { Gate } from './gate.ts';
import { planUnits, type Unit, UnitQueue } from './plan-units.ts';
import { runUnit } from './run-unit.ts';

/** An environment with its name in the progress. */
export interface Lane {
  readonly name: string;
  readonly environment: TestEnvironment;
}

/** One round of cases against one proxy. */
export interface RoundOptions {
  /** Equal environments that share the cases. At least one. */
  readonly lanes: readonly Lane[];
  readonly cases: readonly ConformanceCase[];
  readonly run: RunName;
  /** Source of the random order. */
  readonly random: Random;
  readonly onProgress: OnProgress;
  /** Limits measuring cases of this and other rounds. Default: no limit. */
  readonly measuring?: Gate;
  /** Called when a case fails. */
  readonly onFailure?: () => void;
  /** Called before each unit; true: the rest is skipped. */
  readonly isOver?: () => boolean;
}

/** After this number of units in a row with errors only, the environment counts as broken. */
const patience = 3;

/** Runs all cases once; results in the order of `cases`, also for those that were skipped or not reached. */
export async function runRound(options: RoundOptions, signal: AbortSignal): Promise<readonly CaseResult[]> {
  const { cases, lanes, run, onProgress } = options;
  const [first] = lanes;
  if (first === undefined) throw new UsageError('conformance.round', 'a round needs an environment');
  onProgress({ kind: 'runStarted', run, caseIds: cases.map(({ id }) => id) });
  const results = new Map<string, CaseResult>();
  const skippedSteps = new Map<string, readonly SkippedStep[]>();
  const add = (lane: string, done: CaseResult): void => {
    const steps = skippedSteps.get(done.id);
    const result = steps === undefined ? done : { ...done, skippedSteps: steps };
    results.set(result.id, result);
    onProgress({ kind: 'caseEnded', run, lane, result });
  };
  const due: ConformanceCase[] = [];
  for (const one of cases) {
    const fit = fitToEnvironment(one, first.environment);
    if (fit.status === 'skipped') add(first.name, notRun(one, 'skipped', fit.because));
    else {
      due.push(fit.case);
      if (fit.skippedSteps.length > 0) skippedSteps.set(one.id, fit.skippedSteps);
    }
  }
  const queue = new UnitQueue(planUnits(due, options.random));
  try {
    // Wait for all, also after an abort: the environment must be idle before its owner removes it.
    const ended = await Promise.allSettled(lanes.map((lane) => work(lane, queue, { ...options, add }, signal)));
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
    for (const one of cases) if (!results.has(one.id)) add(first.name, notReached(one, options.isOver?.() === true));
  } finally {
    onProgress({ kind: 'runEnded', run });
  }
  return cases.flatMap(({ id }) => results.get(id) ?? []);
}

function notReached(one: ConformanceCase, isOver: boolean): CaseResult {
  return isOver
    ? notRun(one, 'skipped', 'not run: a case failed before, and --fail-fast ends the run then')
    : notRun(one, 'error', 'not run: the lab or cluster failed several times in a row before');
}

async function work(
  { name, environment }: Lane,
  queue: UnitQueue,
  {
    run,
    onProgress,
    measuring,
    onFailure,
    isOver,
    add,
  }: RoundOptions & { readonly add: (lane: string, result: CaseResult) => void },
  signal: AbortSignal,
): Promise<void> {
  const events = {
    started: (id: string) => onProgress({ kind: 'caseStarted', run, lane: name, id }),
    progress: (id: string, text: string) => onProgress({ kind: 'caseProgress', run, lane: name, id, text }),
  };
  let errors = 0;
  let settings: string | undefined;
  for (;;) {
    signal.throwIfAborted();
    if (errors >= patience || isOver?.() === true) return;
    const unit = queue.take(settings);
    if (unit === undefined) return;
    settings = unit.settings;
    const go = (): ReturnType<typeof runUnit> => runUnit(unit, { environment, events }, signal);
    const places = placesFor(unit);
    const results = await (measuring === undefined || places === 0 ? go() : measuring.run(places, go, signal));
    for (const result of results) add(name, result);
    errors = results.every(({ status }) => status === 'error') ? errors + 1 : 0;
    if (results.some(({ status }) => status === 'failed')) onFailure?.();
  }
}

/** Places of all labs of a process: enough for two measuring cases at once, or four rolling updates. */
export const placesForMeasuring = 4;

/**
 * Sequences measure times and losses under load. A rolling update waits most of its time, and its limits depend on pods, not on a busy
 * machine.
 */
function placesFor({ cases }: Unit): number {
  if (!cases.some(({ kind }) => kind === 'sequence')) return 0;
  return cases.every(({ tags }) => tags.includes('rollout')) ? 1 : 2;
}

/** The result of a case that was not run. */
export function notRun(one: ConformanceCase, status: 'skipped' | 'error', because: string): CaseResult {
  const { id, title, why, tags, families } = one;
  const startedAt = new Date(systemClock.now()).toISOString();
  const about = { id, title, why, tags, families, status, because };
  return { ...about, startedAt, duration: millis(0), checks: [], rollouts: [] };
}
