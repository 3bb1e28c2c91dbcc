import { ApiServerError, HostError, InvariantError, messageOf, millis, systemClock } from '@switchyard/core';
import type { Millis } from '@switchyard/core';
import { firstState, runOnTable, type Scenario, flowText } from '@switchyard/scenarios';
import { ErrorPace, Gate } from './error-pace.ts';
import { EvidenceTimes, withoutEvidence } from './evidence.ts';
import type { Unit } from './plan-units.ts';
import { lookAt, runSteps, type ScenarioRun } from './run-scenario.ts';
import type { ConformanceCase } from '../model/case.ts';
import type {
  CaseResult,
  CaseStatus,
  CheckResult,
  InconclusiveCheck,
  PacketPath,
  RolloutTimeline,
  SkippedStep,
} from '../model/report-file.ts';
import type { TestEnvironment, OwnEnd, CaseRecorder, FlowAt } from '../model/test-environment.ts';
import { orMessage } from '../trace/trace-flow.ts';

/** Packets under way at a time, from all cases of an environment. */
const packetsAtOnce = 160;
/** A case that takes longer has got stuck. */
const longest = 15 * 60_000;

export interface UnitEvents {
  started(id: string): void;
  progress(id: string, text: string): void;
}

/** Runs a unit on an environment that has nothing else to do. Never rejects for what a case or the environment did, only for `signal`. */
export async function runUnit(
  unit: Unit,
  { environment, events }: { readonly environment: TestEnvironment; readonly events: UnitEvents },
  signal: AbortSignal,
): Promise<readonly CaseResult[]> {
  signal.throwIfAborted();
  const attempts = unit.cases.map((one) => new Attempt(one, environment, events, signal));
  const limited = AbortSignal.any([signal, AbortSignal.timeout(longest)]);
  try {
    if (unit.kind === 'batch') await runBatch(attempts, environment, limited);
    else {
      await attempts[0]?.runAlone(limited);
      await noteOwnEnd(attempts, environment);
    }
  } catch (caught) {
    signal.throwIfAborted();
    const late = `it was not done after ${longest / 60_000} minutes, and was given up`;
    const error = limited.aborted ? new HostError('conformance.stuck', late, { cause: caught }) : caught;
    const left = attempts.filter(({ isOver }) => !isOver);
    for (const attempt of left) attempt.fail(error);
    await noteOwnEnd(left, environment);
  }
  return Promise.all(attempts.map((attempt) => attempt.result()));
}

/** A proxy that ended without being stopped is at fault, independent of the packets, even if it ended after the last of them. */
async function noteOwnEnd(attempts: readonly Attempt[], environment: TestEnvironment): Promise<void> {
  const end = await environment.proxy?.ownEnd();
  if (end !== undefined) for (const attempt of attempts) attempt.noteOwnEnd(end);
}

/** Runs all cases together, or by halves if the cluster does not take them together. Rejects if the remaining cases have no result. */
async function runBatch(
  attempts: readonly Attempt[],
  environment: TestEnvironment,
  signal: AbortSignal,
): Promise<void> {
  const scenarios = attempts.flatMap(({ scenario }) => scenario ?? []);
  const [first] = scenarios;
  if (first === undefined) return;
  await environment.reset(first.agent, signal);
  try {
    const moments = scenarios.map((scenario) => ({ scenario, state: firstState(scenario) }));
    await environment.put(moments, { wait: true }, signal);
  } catch (error) {
    if (!isRefusal(error) && (await environment.proxy?.ownEnd()) === undefined) throw error;
    if (attempts.length === 1) {
      attempts[0]?.fail(error);
      return noteOwnEnd(attempts, environment);
    }
    // The API server refuses one of them, or the proxy ends because of one: smaller batches show which.
    const half = Math.ceil(attempts.length / 2);
    await runBatch(attempts.slice(0, half), environment, signal);
    return runBatch(attempts.slice(half), environment, signal);
  }
  const shared = { gate: new Gate(packetsAtOnce), pace: new ErrorPace(environment, signal) };
  await Promise.all(attempts.map((attempt) => attempt.lookInBatch(shared, signal)));
  signal.throwIfAborted();
  await noteOwnEnd(attempts, environment);
}

function isRefusal(error: unknown): boolean {
  return error instanceof ApiServerError && error.status !== undefined && error.status >= 400 && error.status < 500;
}

class Attempt {
  readonly #case: ConformanceCase;
  readonly #environment: TestEnvironment;
  readonly #recording: Recording;
  readonly #startedAt = new Date(systemClock.now()).toISOString();
  readonly #start = systemClock.monotonic();
  #end: Millis | undefined;
  #error: unknown;

  constructor(one: ConformanceCase, environment: TestEnvironment, events: UnitEvents, signal: AbortSignal) {
    this.#case = one;
    this.#environment = environment;
    this.#recording = startRecording(environment, (text) => events.progress(one.id, text), signal);
    events.started(one.id);
  }

  /** Undefined for a case that is written as a program. */
  get scenario(): Scenario | undefined {
    return this.#case.kind === 'scenario' ? this.#case.scenario : undefined;
  }

  /** Whether it has ended or failed. */
  get isOver(): boolean {
    return this.#end !== undefined || this.#error !== undefined;
  }

  fail(error: unknown): void {
    this.#error = error;
  }

  /** Records that the proxy ended on its own: a failed check, even if nothing else could be checked. */
  noteOwnEnd({ observed, log }: OwnEnd): void {
    this.#end ??= systemClock.monotonic();
    const what = 'the proxy runs until it is stopped';
    this.#recording.check({ id: 'the proxy', what, expected: 'runs', observed, because: log });
  }

  async runAlone(signal: AbortSignal): Promise<void> {
    const [one, environment, record] = [this.#case, this.#environment, this.#recording];
    if (one.kind === 'sequence') await one.run(environment, record, signal);
    else {
      checkOracle(one.scenario);
      await environment.reset(one.scenario.agent, signal);
      const shared = { gate: new Gate(packetsAtOnce), pace: new ErrorPace(environment, signal) };
      const { scenario } = one;
      await runSteps({ scenario, signal, environment, record, ...shared, traced: () => record.traced() });
    }
    this.#end = systemClock.monotonic();
  }

  /** Keeps an error of one case from the others of its batch. */
  async lookInBatch(shared: Pick<ScenarioRun, 'gate' | 'pace'>, signal: AbortSignal): Promise<void> {
    const { scenario } = this;
    if (scenario === undefined) return;
    try {
      checkOracle(scenario);
      const looks = scenario.steps.filter((step) => step.kind === 'flow' || step.kind === 'healthCheck');
      const [environment, record] = [this.#environment, this.#recording];
      const run = { scenario, signal, environment, record, ...shared, traced: () => record.traced() };
      await lookAt(looks, run);
      this.#end = systemClock.monotonic();
    } catch (caught) {
      this.#error = caught;
    }
  }

  async result(): Promise<CaseResult> {
    const { id, title, why, tags, families } = this.#case;
    const { rollouts, skipped } = this.#recording;
    const { checks, withoutVerdict } = await this.#recording.results();
    const isDone = this.#end !== undefined;
    const hasFailed = checks.some(({ isAsExpected }) => !isAsExpected);
    const hasVerdict = checks.length + rollouts.length > 0;
    const [open] = withoutVerdict;
    const [left] = skipped;
    const whyOpen = open === undefined ? left?.because : `inconclusive: ${open.because}`;
    const isUndecided = isDone && !hasVerdict && whyOpen !== undefined;
    const verdict: CaseStatus = hasFailed ? 'failed' : 'passed';
    const status: CaseStatus = isUndecided ? 'skipped' : isDone && hasVerdict ? verdict : 'error';
    const reason = status === 'error' ? this.#whyNot(isDone) : undefined;
    const because = isUndecided ? whyOpen : reason;
    const undecided = withoutVerdict.length === 0 ? {} : { inconclusive: withoutVerdict };
    const leftOut = skipped.length === 0 ? {} : { skippedSteps: skipped };
    const duration = millis((this.#end ?? systemClock.monotonic()) - this.#start);
    const about = { id, title, why, tags, families, status, because };
    return { ...about, startedAt: this.#startedAt, duration, checks, rollouts, ...undecided, ...leftOut };
  }

  #whyNot(isDone: boolean): string {
    if (isDone) return 'it looked at nothing';
    return this.#error === undefined ? 'it was not run to its end' : messageOf(this.#error);
  }
}

/** Throws if the oracle contradicts the scenario's file: that is our error, and says nothing about the proxy. */
function checkOracle(scenario: Scenario): void {
  const wrong = runOnTable(scenario).steps.find(({ isAsExpected }) => !isAsExpected);
  if (wrong === undefined) return;
  const { line, step, expected, observed } = wrong;
  throw new InvariantError(
    `${scenario.id} line ${line} (${step}) expects "${expected}", but Switchyard's own table says "${observed}": one of them is wrong`,
  );
}

/** Number of failures per case that are traced through the kernel. Further ones look alike, and each trace takes time. */
const mostTraced = 3;
const notTraced = `not followed: it is after the ${mostTraced} failures of this case that were`;

/** A case's results so far. */
interface Recording extends CaseRecorder {
  readonly rollouts: readonly RolloutTimeline[];
  /** Checks that the environment cannot make. */
  readonly skipped: readonly SkippedStep[];
  /** Resolves when the packets of failed checks have been traced. */
  traced(): Promise<unknown>;
  /** All checks with a verdict, once their packets have been traced, and those without one. */
  results(): Promise<{
    readonly checks: readonly CheckResult[];
    readonly withoutVerdict: readonly InconclusiveCheck[];
  }>;
}

/** Traces the packet of a failed flow at once, before the cluster changes. */
function startRecording(environment: TestEnvironment, tell: (text: string) => void, signal: AbortSignal): Recording {
  const recorded: Recorded[] = [];
  const times = new EvidenceTimes(systemClock.now());
  const rollouts: RolloutTimeline[] = [];
  const undecided: InconclusiveCheck[] = [];
  const skipped: SkippedStep[] = [];
  let traced = 0;
  const pathOf = async (at: FlowAt): Promise<readonly PacketPath[]> => {
    traced += 1;
    const isTraced = traced <= mostTraced;
    // A failed explanation or trace is a line: it must not lose the check.
    const table = await orMessage('the oracle fails', async () => onTable(at));
    const trace = (): Promise<readonly string[]> => environment.trace(at.scenario, at.flow, signal);
    const packets = isTraced ? await orMessage('could not be followed', trace) : [notTraced];
    signal.throwIfAborted();
    return [
      { run: 'table', lines: table },
      { run: 'packets', lines: packets },
    ];
  };
  return {
    rollouts,
    skipped,
    check: (given, at, since) => {
      const isAsExpected = given.expected === given.observed;
      const path = isAsExpected || at === undefined ? Promise.resolve([]) : pathOf(at);
      path.catch(() => undefined); // `traced` and `results` reject with it
      const to = systemClock.now();
      recorded.push({ check: { ...given, isAsExpected, path: [] }, path, from: since ?? times.note(to), to });
    },
    inconclusive: (check) => void undecided.push(check),
    skip: (step) => void skipped.push(step),
    rollout: (timeline) => void rollouts.push(timeline),
    progress: tell,
    traced: () => Promise.all(recorded.map(({ path }) => path)),
    results: async () => {
      const checks: CheckResult[] = [];
      const withoutVerdict = [...undecided];
      for (const { check, path, from, to } of recorded) {
        const open = await withoutEvidence(check, async () => environment.machineBetween?.(from, to, signal), signal);
        if (open === undefined) checks.push({ ...check, path: await path });
        else withoutVerdict.push(open);
      }
      return { checks, withoutVerdict };
    },
  };
}

/** A check, and the time (wall clock) during which its evidence was gathered. */
interface Recorded {
  readonly check: CheckResult;
  readonly path: Promise<readonly PacketPath[]>;
  readonly from: Millis;
  readonly to: Millis;
}

/** The oracle's explanation of the flow. */
function onTable({ scenario, flow }: FlowAt): readonly string[] {
  const found = scenario.steps.find((step) => step.kind === 'flow' && step.flow === flow);
  const line = found?.line ?? 1;
  const asked = found === undefined ? { ...scenario, steps: [{ kind: 'flow', flow, line } as const] } : scenario;
  const result = runOnTable(asked).steps.find((step) => step.line === line);
  return result === undefined ? [] : [`${flowText(flow)}: ${result.observed}`, ...result.because];
}
