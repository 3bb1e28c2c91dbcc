import type { DataplaneName } from '@switchyard/scenarios';
import { HostError, InvariantError, type Millis, millis, systemClock } from '@switchyard/core';
import { catalogue } from '../../src/cases/catalogue.ts';
import type { Gate } from '../../src/engine/error-pace.ts';
import { type Lane, runRound } from '../../src/engine/run-round.ts';
import { casesOfStage } from './stages.ts';
import { seededRandom } from '../../src/engine/plan-units.ts';
import { openLabEnvironment } from '../../src/lab/lab-environment.ts';
import { type BackendName, ownProxy, type ProxyProgram } from '../../src/lab/proxy-program.ts';
import type { TestEnvironment } from '../../src/model/test-environment.ts';
import type { ConformanceCase } from '../../src/model/case.ts';
import type { CaseResult } from '../../src/model/report-file.ts';

/** Result of the suite for an agent. `duration` includes building the lab. */
export type SuiteResult = { readonly duration: Millis } & (
  | {
      readonly status: 'caught';
      readonly caseId: string;
      readonly check: string;
      readonly expected: string;
      readonly observed: string;
    }
  /** Twice in a row a case could not be run to its end, as when the proxy does not apply what was written. */
  | { readonly status: 'stalled'; readonly caseId: string; readonly because: string }
  | { readonly status: 'survived'; readonly cases: number }
);

/** Shared parts and progress of a suite. */
export interface SuiteOptions {
  /** Lets one case at a time look at times and losses, of all suites that run side by side. */
  readonly measuring: Gate;
  readonly onProgress: (text: string) => void;
  /** Told of cases that failed once and passed then. */
  readonly onFlake: (caseIds: readonly string[]) => void;
}

/** A lab for one stage of the suite with one backend; one agent after the other is looked at in it. */
export class StageEnvironment implements AsyncDisposable {
  readonly backend: BackendName;
  readonly stage: number;
  readonly #name: string;
  readonly #environment: TestEnvironment;
  readonly #cases: readonly ConformanceCase[];
  readonly #clean: ProxyProgram;
  readonly #current: { program: string };
  #isUsed = false;

  private constructor(parts: Parts) {
    this.backend = parts.place.backend;
    this.stage = parts.place.stage;
    this.#name = parts.place.labName;
    this.#environment = parts.environment;
    this.#cases = parts.cases;
    this.#clean = parts.clean;
    this.#current = parts.current;
  }

  /** Rejects when the lab cannot be built or `signal` aborts. */
  static async open(place: StagePlace, signal: AbortSignal): Promise<StageEnvironment> {
    const { backend, stage, labName: name, only } = place;
    const clean = await ownProxy(backend);
    const all = catalogueOf(clean.about.dataplane);
    const cases = casesOfStage(stage, only === undefined ? all : all.filter(({ id }) => only.test(id)));
    const current = { program: '' };
    const program: ProxyProgram = {
      ...clean,
      command: (at, agent) => [current.program, ...clean.command(at, agent).slice(1)],
    };
    const environment = await openLabEnvironment({ name, cell: 'dual', program, cases }, signal);
    return new StageEnvironment({ place, environment, cases, clean, current });
  }

  /** Runs the stage with this agent until a case fails. */
  async run(program: string, options: SuiteOptions, signal: AbortSignal): Promise<SuiteResult> {
    const start = systemClock.monotonic();
    if (this.#isUsed) await this.#wipe();
    this.#isUsed = true;
    this.#current.program = program;
    const lane = { name: this.#name, environment: untraced(this.#environment) };
    const verdict = await firstFailure(this.#cases, { lane, ...options }, signal);
    const duration = millis(Math.round(systemClock.monotonic() - start));
    return { duration, ...(typeof verdict === 'number' ? { status: 'survived', cases: verdict } : verdict) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#environment[Symbol.asyncDispose]();
  }

  /** Nothing that one agent left is found by the next: our own, unbroken, removes it. */
  async #wipe(): Promise<void> {
    await this.#environment.proxy?.kill();
    const [node] = this.#environment.lab?.nodes ?? [];
    if (node === undefined) return;
    const place = { node, kubeconfig: '', config: '', flags: [] };
    // Of any case: which settings the agent had is nothing to its clean-up.
    const usual = catalogueOf(this.#clean.about.dataplane).find((one) => one.kind === 'scenario')?.scenario.agent;
    if (usual === undefined) throw new InvariantError('the catalogue has no scenario');
    const [file, ...args] = this.#clean.command(place, usual);
    const env = { XTABLES_LOCKFILE: `${this.#environment.lab?.folder}/.xtables.lock` }; // others on this machine are not waited for
    const cleaned = await node.run(file, ['--cleanup', ...args], { timeout: millis(30_000), env });
    if (cleaned.exitCode === 0) return;
    throw new HostError('mutants.cleanup', `the agent could not clean ${node.name}: ${cleaned.stderr.trim()}`);
  }
}

/** Where and what. */
export interface StagePlace {
  readonly backend: BackendName;
  readonly stage: number;
  readonly labName: string;
  /** Undefined: all cases of the stage. */
  readonly only?: RegExp | undefined;
}

interface Parts {
  readonly place: StagePlace;
  readonly environment: TestEnvironment;
  readonly cases: readonly ConformanceCase[];
  readonly clean: ProxyProgram;
  readonly current: { program: string };
}

const catalogues = new Map<DataplaneName, readonly ConformanceCase[]>();

/** Made once: it is hundreds of scenarios. */
function catalogueOf(dataplane: DataplaneName): readonly ConformanceCase[] {
  const known = catalogues.get(dataplane) ?? catalogue({ dataplane, cell: 'dual' });
  catalogues.set(dataplane, known);
  return known;
}

type Verdict = SuiteResult extends infer R ? (R extends unknown ? Omit<R, 'duration'> : never) : never;

interface PhaseOptions extends SuiteOptions {
  readonly lane: Lane;
}

/**
 * How many passed, if all did that are for this environment. What failed or had an error is run once more: only what goes wrong
 * twice is the agent's doing.
 */
async function firstFailure(
  cases: readonly ConformanceCase[],
  options: PhaseOptions,
  signal: AbortSignal,
): Promise<Verdict | number> {
  let passed = 0;
  let left = cases;
  while (left.length > 0) {
    const results = await untilFailure(left, options, signal);
    const wrong = new Set(results.flatMap(({ id, status }) => (['failed', 'error'].includes(status) ? [id] : [])));
    passed += results.filter(({ status }) => status === 'passed').length;
    if (wrong.size > 0) {
      const again = await untilFailure(
        left.filter(({ id }) => wrong.has(id)),
        options,
        signal,
      );
      const verdict = failureIn(again) ?? stallIn(again);
      if (verdict !== undefined) return verdict;
      passed += wrong.size;
      options.onFlake([...wrong]);
    }
    const done = new Set(results.flatMap(({ id, status, because }) => (isReached(status, because) ? [id] : [])));
    left = left.filter(({ id }) => !done.has(id));
  }
  return passed;
}

/** A round that is over says of the cases behind that they were skipped, as of those that are not for this environment. */
function isReached(status: CaseResult['status'], because: string | undefined): boolean {
  return status !== 'skipped' || because?.startsWith('not run:') !== true;
}

function stallIn(results: readonly CaseResult[]): Verdict | undefined {
  const stuck = results.find(({ status }) => status === 'error');
  return stuck && { status: 'stalled', caseId: stuck.id, because: stuck.because ?? '' };
}

async function untilFailure(
  cases: readonly ConformanceCase[],
  { lane, measuring, onProgress }: PhaseOptions,
  signal: AbortSignal,
): Promise<readonly CaseResult[]> {
  let isOver = false;
  const run = { proxy: lane.environment.proxyUnderTest.name, cell: 'dual', round: 1 } as const;
  return runRound(
    {
      lanes: [lane],
      cases,
      run,
      measuring,
      random: seededRandom(1),
      onProgress: (event) => {
        if (event.kind === 'caseStarted') onProgress(event.id);
        // Each such case may have waited half a minute, and the next would.
        if (event.kind === 'caseEnded' && event.result.status === 'error') isOver = true;
      },
      onFailure: () => (isOver = true),
      isOver: () => isOver,
    },
    signal,
  );
}

function failureIn(results: readonly CaseResult[]): Verdict | undefined {
  for (const { id, checks } of results) {
    const wrong = checks.find(({ isAsExpected }) => !isAsExpected);
    if (wrong === undefined) continue;
    const { what, expected, observed } = wrong;
    return { status: 'caught', caseId: id, check: `${wrong.id}: ${what}`, expected, observed };
  }
  return undefined;
}

/** Without traces: a failed check is enough here. */
function untraced(environment: TestEnvironment): TestEnvironment {
  const { target, ipFamilies, proxyUnderTest, can, proxy, lab, cluster } = environment;
  return {
    target,
    ipFamilies,
    proxyUnderTest,
    can,
    proxy,
    lab,
    cluster,
    obstacle: (one) => environment.obstacle(one),
    stepObstacle: (scenario, step) => environment.stepObstacle(scenario, step),
    reset: (agent, signal) => environment.reset(agent, signal),
    put: (moments, options, signal) => environment.put(moments, options, signal),
    connectorFor: (scenario, flow, signal) => environment.connectorFor(scenario, flow, signal),
    icmpErrorsHeldBack: (signal) => environment.icmpErrorsHeldBack(signal),
    health: (scenario, check, signal) => environment.health(scenario, check, signal),
    trace: () => Promise.resolve([]),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
