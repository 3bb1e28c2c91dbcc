import {
  type Flow,
  type IpFamily,
  type Random,
  diffTables,
  type ForwardingTable,
  InvariantError,
  type ServicePortKey,
  type DataplaneTraits,
  type IpAddress,
} from '@switchyard/core';
import { type DataplaneBackend, type ApplyOutcome, type ApplyRequest, withFailed } from '@switchyard/core/engine';
import { familiesOf } from './cluster-objects.ts';
import { healthOnTable } from './run-on-table.ts';
import { coreFlow } from './scenario-flow.ts';
import { firstState, nextState, ScenarioTables, type TablesByFamily } from './scenario-tables.ts';
import type { Scenario, ScenarioFlow } from './scenario.ts';
import {
  changeText,
  expectationText,
  keptExpectation,
  flowText,
  nothingChanges,
  observationText,
  restartText,
} from './verdict.ts';
import type { RunResult, StepResult, Observation } from './verdict.ts';

/** Options of `runOnBackend`. */
export interface RunOnBackendOptions {
  /** Share of valid transactions that fail; default 0. Needs `random`. */
  readonly failureRate?: number;
  readonly random?: Random;
}

/** Element writes of one change. */
export interface ChangeWrites {
  /** `start`, or `changeText` of the step. */
  readonly change: string;
  readonly writes: number;
}

/** Result of a scenario on a backend's kernel. */
export interface BackendResult extends RunResult {
  /** Element writes of the first state (`start`) and of each step that changes something, with the step's text. */
  readonly writes: readonly ChangeWrites[];
  /** The backend's own text of the kernel after each of these, families joined. */
  readonly dumps: readonly string[];
}

/**
 * Runs a scenario on the rendering: applies the table of each state to a backend over its fake kernel, until it is applied, and asks
 * the kernel what it would do with every flow. Health checks are not rendered; their results are the table's.
 */
export async function runOnBackend(
  scenario: Scenario,
  harness: BackendHarness,
  options: RunOnBackendOptions,
  signal: AbortSignal,
): Promise<BackendResult> {
  const kernel = harness.createKernel();
  kernel.injectFailures(options.failureRate ?? 0, options.random ?? (() => 1));
  await using run = new BackendRun(kernel, familiesOf(scenario));
  const all = new ScenarioTables(scenario);
  let state = firstState(scenario);
  let tables = all.update(state);
  await run.start(signal);
  await run.apply('start', tables, signal);
  const steps: StepResult[] = [];
  for (const step of scenario.steps) {
    const next = nextState(state, step);
    if (next !== state) {
      tables = all.update(next);
      await run.apply(changeText(step), tables, signal);
    }
    state = next;
    if (step.kind === 'flow') steps.push(flowOnKernel(scenario, kernel, step));
    if (step.kind === 'healthCheck') steps.push(healthOnTable(tables, step));
    if (step.kind === 'restartAgent') {
      await run.start(signal);
      steps.push(restartResult(step.line, await run.apply(changeText(step), tables, signal)));
    }
  }
  return { run: 'rendering', steps, writes: run.writes, dumps: run.dumps };
}

/** Returns what a kernel would do with one flow of a scenario. */
export function flowOnKernel(
  scenario: Scenario,
  kernel: FakeKernel,
  { flow, line }: { readonly flow: ScenarioFlow; readonly line: number },
): StepResult {
  const expected = expectationText(flow.expect);
  const sent = coreFlow(scenario, flow);
  const fresh = observationText(kernel.trace(sent), flow);
  const observed = [fresh, ...notKept(flow, sent, kernel)].join(', but ');
  return { line, step: flowText(flow), expected, observed, isAsExpected: expected === observed, because: [] };
}

/** Returns the outcome for a returning client if it does not reach its former endpoint; otherwise empty. */
function notKept(flow: ScenarioFlow, sent: Flow, kernel: FakeKernel): readonly string[] {
  const returning = flow.kept === undefined ? undefined : kernel.traceReturning?.(sent, flow.kept);
  if (returning === undefined) return [];
  const kept = expectationText(keptExpectation(flow));
  const back = observationText(returning, flow);
  return back === kept ? [] : [`a client of ${flow.kept}: ${back}`];
}

function restartResult(line: number, writes: number): StepResult {
  const observed = writes === 0 ? nothingChanges : `${writes} writes`;
  const because = ['a new instance found in the kernel what an old one had written'];
  return { line, step: restartText, expected: nothingChanges, observed, isAsExpected: writes === 0, because };
}

/** The backends of a run, one per family, over one kernel. */
class BackendRun implements AsyncDisposable {
  readonly writes: ChangeWrites[] = [];
  readonly dumps: string[] = [];
  readonly #kernel: FakeKernel;
  readonly #families: readonly IpFamily[];
  #backends = new Map<IpFamily, { readonly backend: DataplaneBackend; readonly applier: TableApplier }>();

  constructor(kernel: FakeKernel, families: readonly IpFamily[]) {
    this.#kernel = kernel;
    this.#families = families;
  }

  /** Replaces the backends by new instances. */
  async start(signal: AbortSignal): Promise<void> {
    await this[Symbol.asyncDispose]();
    for (const family of this.#families) {
      const backend = await this.#kernel.open(family, signal);
      this.#backends.set(family, { backend, applier: new TableApplier(backend) });
    }
  }

  async apply(change: string, tables: TablesByFamily, signal: AbortSignal): Promise<number> {
    let writes = 0;
    const texts: string[] = [];
    for (const [family, { backend, applier }] of this.#backends) {
      const table = tables.get(family);
      if (table !== undefined) writes += (await applier.apply(table, signal)).writes;
      texts.push(await backend.dump(signal));
    }
    this.writes.push({ change, writes });
    this.dumps.push(texts.join(''));
    return writes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { backend } of this.#backends.values()) await backend[Symbol.asyncDispose]();
    this.#backends.clear();
  }
}

/** At a failure rate of one in ten, more attempts than this are not chance. */
const maxAttempts = 60;

/** Cost of applying one table. */
export interface Applied {
  /** Element writes of all attempts. */
  readonly writes: number;
  readonly attempts: number;
}

/** Applies one table after another to a backend and retries failures, as the reconciler does. */
export class TableApplier {
  readonly #backend: DataplaneBackend;
  #applied: ForwardingTable | undefined;
  #failed: ReadonlyMap<ServicePortKey, Error> = new Map();

  constructor(backend: DataplaneBackend) {
    this.#backend = backend;
  }

  /** Resolves when the kernel has the table. Rejects with `InvariantError` after too many attempts. */
  async apply(table: ForwardingTable, signal: AbortSignal): Promise<Applied> {
    let writes = 0;
    for (let attempts = 1; attempts <= maxAttempts; attempts++) {
      const outcome = await this.attempt(table, signal);
      if (outcome.status !== 'failed') writes += outcome.writes;
      if (outcome.status === 'applied') return { writes, attempts };
    }
    throw new InvariantError(`${this.#backend.name} has not applied a table after ${maxAttempts} attempts`);
  }

  /** One attempt: a full apply at first and after a failure, otherwise the difference to the applied table. */
  async attempt(table: ForwardingTable, signal: AbortSignal): Promise<ApplyOutcome> {
    const outcome = await this.#backend.apply({ table, scope: this.#scopeOf(table) }, signal);
    this.#applied = outcome.status === 'failed' ? undefined : table;
    this.#failed = outcome.status === 'partial' ? outcome.failed : new Map();
    return outcome;
  }

  #scopeOf(table: ForwardingTable): ApplyRequest['scope'] {
    if (this.#applied === undefined) return { kind: 'full' };
    return { kind: 'delta', delta: withFailed(diffTables(this.#applied, table), table, this.#failed) };
  }
}

/** A dataplane backend over a fake kernel, as `runOnBackend` and the contract suite drive it. */
export interface BackendHarness {
  /** Name of the backend and of its golden files. */
  readonly name: string;
  /** Traits that decide the expected results. */
  readonly dataplane: DataplaneTraits;
  /** Creates an empty kernel that is not shared. */
  createKernel(): FakeKernel;
}

/** A kernel without packets: it accepts the writes of a backend and predicts what it would do with a packet. */
export interface FakeKernel {
  /** A new instance of the backend over this kernel, as a started agent opens it. */
  open(ipFamily: IpFamily, signal: AbortSignal): Promise<DataplaneBackend>;
  /**
   * Returns the outcome of the first packet of a flow, over all random choices. `masquerade` is that of the endpoints that are
   * not the sender, or of the sender if there is no other. Throws if it depends on chance.
   */
  trace(flow: Flow): Observation;
  /**
   * As `trace`, for a client that used this endpoint before, if the Service has session affinity. Absent if the fake kernel has no
   * affinity state; undefined if it has none for this flow.
   */
  traceReturning?(flow: Flow, endpoint: IpAddress): Observation | undefined;
  /** Makes this share of all valid transactions fail; 0 for none. */
  injectFailures(rate: number, random: Random): void;
  /** Makes the kernel refuse writes with this address; undefined accepts everything again. */
  refuse(address: string | undefined): void;
  /** Whether the kernel has no state of the backend. */
  isEmpty(): boolean;
}
