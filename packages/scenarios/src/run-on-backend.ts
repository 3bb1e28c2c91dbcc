import type { DataplaneBackend } from '@switchyard/core/engine';
import type { Flow, IpFamily, Random } from '@switchyard/core';
import { TableApplier } from './apply-until-done.ts';
import type { BackendHarness, FakeKernel } from './backend-harness.ts';
import { familiesOf } from './cluster-objects.ts';
import { healthOnTable } from './run-on-table.ts';
import type { Scenario, ScenarioFlow } from './scenario.ts';
import { coreFlow } from './scenario-flow.ts';
import { firstState, nextState } from './scenario-state.ts';
import { ScenarioTables, type TablesByFamily } from './scenario-tables.ts';
import {
  type RunResult,
  changeText,
  expectationText,
  keptExpectation,
  flowText,
  nothingChanges,
  observationText,
  restartText,
  type StepResult,
} from './verdict.ts';

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
  return { run: 'rendering', steps, skipped: [], writes: run.writes, dumps: run.dumps };
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
