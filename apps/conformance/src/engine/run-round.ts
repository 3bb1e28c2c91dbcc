import { ipFamilies, millis, type Random, systemClock, UsageError } from '@switchyard/core';
import type { Scenario } from '@switchyard/scenarios';
import { checkIdOf, scenarioNeeds } from '../cases/scenario-cases.ts';
import type { RunConfig } from '../config.ts';
import { Gate } from './error-pace.ts';
import { isWorthRepeating } from './evidence.ts';
import { planUnits, takeUnit, type Unit, seededRandom } from './plan-units.ts';
import { runUnit } from './run-unit.ts';
import type { Ability, ConformanceCase, OnProgress, RunName, ScenarioCase, FamilyCell } from '../model/case.ts';
import type { CaseResult, SkippedStep, ProxyUnderTest, RunAbout, RunReport, Target } from '../model/report-file.ts';
import type { TestEnvironment } from '../model/test-environment.ts';
import { release } from 'node:os';

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
  /** For a report of what is done when the run is stopped. */
  readonly about?: RunAbout;
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
  const { cases, lanes, run, about, onProgress } = options;
  const [first] = lanes;
  if (first === undefined) throw new UsageError('conformance.round', 'a round needs an environment');
  const caseIds = cases.map(({ id }) => id);
  onProgress({ kind: 'runStarted', run, caseIds, ...(about === undefined ? {} : { about }) });
  const results = new Map<string, CaseResult>();
  const skippedSteps = new Map<string, readonly SkippedStep[]>();
  const add = (lane: string, done: CaseResult): void => {
    const steps = skippedSteps.get(done.id);
    const result = steps === undefined ? done : { ...done, skippedSteps: [...steps, ...(done.skippedSteps ?? [])] };
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
  const waiting = [...planUnits(due, options.random)];
  const attempts = new Map<string, number>();
  /** Notes an attempt; whether the case gets another one. */
  const isRepeated = ({ id, inconclusive = [] }: CaseResult): boolean => {
    const count = (attempts.get(id) ?? 0) + 1;
    attempts.set(id, count);
    return count < mostAttempts && inconclusive.some(isWorthRepeating);
  };
  try {
    // Wait for all, also after an abort: the environment must be idle before its owner removes it.
    const ended = await Promise.allSettled(
      lanes.map((lane) => work(lane, waiting, { ...options, add, isRepeated }, signal)),
    );
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
  waiting: Unit[],
  options: RoundOptions & {
    readonly add: (lane: string, result: CaseResult) => void;
    readonly isRepeated: (result: CaseResult) => boolean;
  },
  signal: AbortSignal,
): Promise<void> {
  const { run, onProgress, measuring, onFailure, isOver, add, isRepeated } = options;
  const events = {
    started: (id: string) => onProgress({ kind: 'caseStarted', run, lane: name, id }),
    progress: (id: string, text: string) => onProgress({ kind: 'caseProgress', run, lane: name, id, text }),
  };
  let errors = 0;
  let settings: string | undefined;
  for (;;) {
    signal.throwIfAborted();
    if (errors >= patience || isOver?.() === true) return;
    const unit = takeUnit(waiting, settings);
    if (unit === undefined) return;
    settings = unit.settings;
    const go = (): ReturnType<typeof runUnit> => runUnit(unit, { environment, events }, signal);
    const places = placesFor(unit);
    const results = await (measuring === undefined || places === 0 ? go() : measuring.run(places, go, signal));
    const again = new Set(results.filter(isRepeated).map(({ id }) => id));
    if (again.size > 0) {
      waiting.push(unitOf(unit, again));
      for (const id of again) events.progress(id, 'once more: the machine was too busy for a verdict');
    }
    const decided = results.filter(({ id }) => !again.has(id));
    for (const result of decided) add(name, result);
    errors = results.every(({ status }) => status === 'error') ? errors + 1 : 0;
    if (decided.some(({ status }) => status === 'failed')) onFailure?.();
  }
}

/** How often a case runs at most until the machine allows a verdict. */
const mostAttempts = 3;

/** The unit with only these of its cases. */
function unitOf(unit: Unit, ids: ReadonlySet<string>): Unit {
  return unit.kind === 'single' ? unit : { ...unit, cases: unit.cases.filter(({ id }) => ids.has(id)) };
}

/** Places of all labs of a process: enough for three measuring cases at once, or six rolling updates. */
const placesForMeasuring = 6;

/** Sequences measure times and losses under load. A rolling update waits most of its time, and its limits depend on pods, not on a busy machine. */
function placesFor({ cases }: Unit): number {
  if (!cases.some(({ kind }) => kind === 'sequence')) return 0;
  return cases.every(({ tags }) => tags.includes('rollout')) ? 1 : 2;
}

function notRun(one: ConformanceCase, status: 'skipped' | 'error', because: string): CaseResult {
  const { id, title, why, tags, families } = one;
  const startedAt = new Date(systemClock.now()).toISOString();
  const about = { id, title, why, tags, families, status, because };
  return { ...about, startedAt, duration: millis(0), checks: [], rollouts: [] };
}

interface Fits {
  readonly status: 'fits';
  readonly case: ConformanceCase;
  readonly skippedSteps: readonly SkippedStep[];
}

/** Reason why an environment cannot do something that needs these abilities, which it lacks. */
export function lackText(
  { target, whyNot }: Pick<TestEnvironment, 'target' | 'whyNot'>,
  missing: readonly Ability[],
): string {
  const [reason] = missing.flatMap((ability) => whyNot?.(ability) ?? []);
  return reason ?? `needs what this ${target} cannot: ${missing.join(', ')}`;
}

/** A case as an environment can run it. */
export type FittedCase = Fits | { readonly status: 'skipped'; readonly because: string };

/** Returns the part of a case that an environment can run: all, all but some steps of its scenario, or nothing. */
export function fitToEnvironment(one: ConformanceCase, environment: TestEnvironment): FittedCase {
  const unsuitable = familyObstacle(one, environment) ?? one.notFor;
  if (unsuitable !== undefined) return { status: 'skipped', because: unsuitable };
  const fitted = one.kind === 'scenario' ? withoutObstacles(one, environment) : { case: one, skippedSteps: [] };
  const [first] = fitted.skippedSteps;
  if (first !== undefined && one.kind === 'scenario' && !looks(fitted.case as ScenarioCase)) {
    return { status: 'skipped', because: first.because };
  }
  const missing = fitted.case.needs.filter((ability) => !environment.can.has(ability));
  if (missing.length > 0) return { status: 'skipped', because: lackText(environment, missing) };
  const because = environment.obstacle(fitted.case);
  return because === undefined ? { status: 'fits', ...fitted } : { status: 'skipped', because };
}

/** Reason why the cluster does not have the families of a case; undefined: it does. First of all reasons, so that all such cases have it. */
function familyObstacle(
  { families }: ConformanceCase,
  { target, ipFamilies: known }: TestEnvironment,
): string | undefined {
  const needed = families === 'dual' ? ipFamilies : [families];
  if (needed.every((family) => known.includes(family))) return undefined;
  return `the Services of this ${target} have only ${known.join(' and ')}`;
}

function withoutObstacles(one: ScenarioCase, environment: TestEnvironment): Omit<Fits, 'status'> {
  const { scenario } = one;
  const skippedSteps: SkippedStep[] = [];
  const steps = scenario.steps.filter((step) => {
    const because = environment.stepObstacle(scenario, step);
    if (because !== undefined) skippedSteps.push({ id: checkIdOf(scenario, step) ?? `line ${step.line}`, because });
    return because === undefined;
  });
  if (skippedSteps.length === 0) return { case: one, skippedSteps };
  const narrowed: Scenario = { ...scenario, steps };
  return { case: { ...one, scenario: narrowed, needs: scenarioNeeds(narrowed) }, skippedSteps };
}

function looks({ scenario }: ScenarioCase): boolean {
  return scenario.steps.some((step) => checkIdOf(scenario, step) !== undefined);
}

export interface ProxyRun {
  readonly target: Target;
  readonly proxy: ProxyUnderTest;
  readonly cell: FamilyCell;
  readonly cases: readonly ConformanceCase[];
  /** Default: this machine's. */
  readonly kernel?: string;
  /** Names of the environments that run side by side. At least one. */
  readonly laneNames: readonly string[];
  readonly openEnvironment: (name: string, signal: AbortSignal) => Promise<TestEnvironment>;
}

/** Options of all runs of an invocation. */
export interface RunsOptions extends Pick<RunConfig, 'jobs' | 'seed' | 'rounds' | 'isFailFast'> {
  readonly onProgress: OnProgress;
}

/** Runs everything in all rounds, side by side as far as `jobs` lanes allow. Reports in the order of `runs`, then of rounds. */
export async function runProxies(
  runs: readonly ProxyRun[],
  options: RunsOptions,
  signal: AbortSignal,
): Promise<readonly RunReport[]> {
  const { jobs, rounds, isFailFast, onProgress } = options;
  const planned = runs.flatMap(({ proxy, cell, cases }) => {
    const caseIds = cases.map(({ id }) => id);
    return Array.from({ length: rounds }, (_, index) => ({
      run: { proxy: proxy.name, cell, round: index + 1 },
      caseIds,
    }));
  });
  onProgress({ kind: 'planned', runs: planned });
  const lanes = new Gate(jobs);
  const broken = new AbortController();
  const either = AbortSignal.any([signal, broken.signal]);
  let hasFailed = false;
  const measuring = new Gate(placesForMeasuring);
  const shared = { measuring, onFailure: () => (hasFailed = true), isOver: () => isFailFast && hasFailed };
  const running = runs.map((run) => {
    const work = (): Promise<readonly RunReport[]> =>
      runProxy({ ...options, ...run, ...shared }, either).catch((error: unknown) => {
        broken.abort(error);
        throw error;
      });
    return lanes.run(run.laneNames.length, work, either);
  });
  const ended = await Promise.allSettled(running);
  return ended.flatMap((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value;
  });
}

type Shared = Pick<RoundOptions, 'measuring' | 'onFailure' | 'isOver'>;

/** Runs all rounds on the same environments and removes these afterwards. If one cannot be built, all cases end with an error. */
async function runProxy(options: ProxyRun & RunsOptions & Shared, signal: AbortSignal): Promise<readonly RunReport[]> {
  const { laneNames, openEnvironment, rounds, proxy, cell, onProgress, seed, target } = options;
  const { kernel = release() } = options;
  await using stack = new AsyncDisposableStack();
  const opened = await Promise.allSettled(laneNames.map((name) => openEnvironment(name, signal)));
  for (const one of opened) if (one.status === 'fulfilled') stack.use(one.value);
  signal.throwIfAborted();
  const broken = opened.find((one) => one.status === 'rejected');
  const lanes = opened.flatMap((one, index) =>
    one.status === 'fulfilled' ? [{ name: laneNames[index] ?? '', environment: one.value }] : [],
  );
  const reports: RunReport[] = [];
  for (let round = 1; round <= (broken === undefined ? rounds : 1); round++) {
    const startedAt = new Date(systemClock.now()).toISOString();
    const start = systemClock.monotonic();
    const run = { proxy: proxy.name, cell, round };
    const about = { target, proxy, cell, kernel, seed, round, startedAt };
    const work = { ...options, lanes, run, about, random: seededRandom(seed) };
    const results =
      broken === undefined ? await runRound(work, signal) : withoutEnvironment(work, broken.reason as Error);
    const duration = millis(systemClock.monotonic() - start);
    reports.push({ ...about, duration, cases: results });
  }
  for (const { name } of lanes) onProgress({ kind: 'lane', lane: name, text: 'removing the environment' });
  return reports;
}

/** Results of a run without an environment: errors, because nothing is known about the proxy. */
function withoutEnvironment(work: ProxyRun & RoundOptions, reason: Error): readonly CaseResult[] {
  const { cases, laneNames, onProgress, run } = work;
  const lane = laneNames[0] ?? '';
  const results = cases.map((one) => notRun(one, 'error', `no environment to run on: ${reason.message}`));
  onProgress({ kind: 'runStarted', run, caseIds: cases.map(({ id }) => id) });
  for (const result of results) onProgress({ kind: 'caseEnded', run, lane, result });
  onProgress({ kind: 'runEnded', run });
  return results;
}
