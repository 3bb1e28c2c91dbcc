import { flowText, runOnTable } from '@switchyard/scenarios';
import type { TestEnvironment } from '../model/test-environment.ts';
import { orMessage } from '../trace/or-message.ts';
import type { CaseRecorder, FlowAt } from '../model/recorder.ts';
import type { CheckResult, InconclusiveCheck, PacketPath, RolloutTimeline } from '../model/report-file.ts';

/** Number of failures per case that are traced through the kernel. Further ones look alike, and each trace takes time. */
const mostTraced = 3;
const notTraced = `not followed: it is after the ${mostTraced} failures of this case that were`;

/** Results of one case. Traces the packet of a failed flow at once, before the cluster changes. */
export class Recording implements CaseRecorder {
  readonly #environment: TestEnvironment;
  readonly #signal: AbortSignal;
  readonly #onProgress: (text: string) => void;
  readonly #checks: { readonly check: CheckResult; readonly path: Promise<readonly PacketPath[]> }[] = [];
  readonly #rollouts: RolloutTimeline[] = [];
  readonly #inconclusive: InconclusiveCheck[] = [];
  #traced = 0;

  constructor(environment: TestEnvironment, onProgress: (text: string) => void, signal: AbortSignal) {
    this.#environment = environment;
    this.#onProgress = onProgress;
    this.#signal = signal;
  }

  check(given: Parameters<CaseRecorder['check']>[0], at?: FlowAt): void {
    const isAsExpected = given.isAsExpected ?? given.expected === given.observed;
    const path = isAsExpected || at === undefined ? Promise.resolve([]) : this.#pathOf(at);
    path.catch(() => undefined); // `checks` rejects with it
    this.#checks.push({ check: { ...given, isAsExpected, path: [] }, path });
  }

  inconclusive(check: InconclusiveCheck): void {
    this.#inconclusive.push(check);
  }

  rollout(timeline: RolloutTimeline): void {
    this.#rollouts.push(timeline);
  }

  progress(text: string): void {
    this.#onProgress(text);
  }

  /** Checks without a verdict so far. */
  get withoutVerdict(): readonly InconclusiveCheck[] {
    return this.#inconclusive;
  }

  get rollouts(): readonly RolloutTimeline[] {
    return this.#rollouts;
  }

  /** All checks so far, once their packets have been traced. */
  async checks(): Promise<readonly CheckResult[]> {
    return Promise.all(this.#checks.map(async ({ check, path }) => ({ ...check, path: await path })));
  }

  async #pathOf(at: FlowAt): Promise<readonly PacketPath[]> {
    this.#traced += 1;
    const isTraced = this.#traced <= mostTraced;
    // A failed explanation or trace is a line: it must not lose the check.
    const table = await orMessage('the oracle fails', async () => onTable(at));
    const trace = (): Promise<readonly string[]> => this.#environment.trace(at.scenario, at.flow, this.#signal);
    const packets = isTraced ? await orMessage('could not be followed', trace) : [notTraced];
    this.#signal.throwIfAborted();
    return [
      { run: 'table', lines: table },
      { run: 'packets', lines: packets },
    ];
  }
}

/** The oracle's explanation of the flow. */
function onTable({ scenario, flow }: FlowAt): readonly string[] {
  const found = scenario.steps.find((step) => step.kind === 'flow' && step.flow === flow);
  const line = found?.line ?? 1;
  const asked = found === undefined ? { ...scenario, steps: [{ kind: 'flow', flow, line } as const] } : scenario;
  const result = runOnTable(asked).steps.find((step) => step.line === line);
  return result === undefined ? [] : [`${flowText(flow)}: ${result.observed}`, ...result.because];
}
