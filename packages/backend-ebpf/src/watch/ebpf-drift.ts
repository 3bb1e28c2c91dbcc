import { type Clock, type Millis, millis, runTogether, seconds, untilBeat } from '@switchyard/core';
import { type Drift, type DriftKind } from '@switchyard/core/engine';
import { DriftTally } from '@switchyard/netfilter';
import { DriftGate } from './drift-gate.ts';
import { Pace } from './pace.ts';

/** A change by another process: its kind, and a description for operators. */
export interface Fault {
  readonly kind: DriftKind;
  readonly text: string;
}

/** Checks for drift. */
export interface EbpfDriftOptions {
  readonly clock: Clock;
  /** Checks of at most a millisecond: links, pins, small maps, the guard table. Run every 400 ms, one after the other. */
  readonly looks: readonly ((signal: AbortSignal) => Promise<readonly Fault[]> | readonly Fault[])[];
  /**
   * Compares large maps with the record and yields descriptions of differences, one part with each step. A part blocks the event loop for
   * less than a millisecond; all parts together are a round. Called once for each round.
   */
  readonly content: () => Iterable<readonly string[]>;
}

/** Interval of the cheap checks, which take some 2 ms together. */
const lookInterval: Millis = millis(400);
/** Time after which drift is reported again if no apply began to heal it. */
const healLimit: Millis = seconds(5);

/**
 * Detects changes of programs, links, pins and maps by other processes. The kernel sends events for pins only, so everything is polled;
 * docs/design/ebpf-drift.md has intervals and costs. The process that made a change is unknown.
 */
export class EbpfDrift {
  readonly #options: EbpfDriftOptions;
  readonly #gate: DriftGate;
  /** Epoch of the last report: the apply that heals it heals everything found before it begins. */
  #toldIn: number | undefined;

  constructor(options: EbpfDriftOptions) {
    this.#options = options;
    this.#gate = new DriftGate(options.clock);
  }

  /** Hold it during an apply or any other write of this process, which is no drift. */
  hold(): Disposable {
    return this.#gate.hold();
  }

  /** As `BackendObservers.drift`. Rejects with the `HostError` of a look that failed. */
  async watch(report: (drift: Drift) => void, signal: AbortSignal): Promise<void> {
    await runTogether(
      [(until) => this.#watchState(report, until), (until) => this.#watchContent(report, until)],
      signal,
    );
  }

  async #watchState(report: (drift: Drift) => void, signal: AbortSignal): Promise<never> {
    const { clock, looks } = this.#options;
    for (;;) {
      await this.#gate.free(signal);
      const { epoch } = this.#gate;
      const tally = new DriftTally();
      for (const look of looks) for (const { kind, text } of await look(signal)) tally.add(kind, text);
      if (this.#gate.epoch === epoch && !tally.isEmpty) await this.#tell(tally, report, signal);
      await clock.sleep(untilBeat(clock, lookInterval), signal);
    }
  }

  async #watchContent(report: (drift: Drift) => void, signal: AbortSignal): Promise<never> {
    const { clock } = this.#options;
    const pace = new Pace(clock);
    for (;;) {
      await this.#gate.free(signal);
      const tally = await this.#compareAll(pace, signal);
      if (tally === undefined) await clock.sleep(pace.afterRound(), signal);
      else await this.#tell(tally, report, signal);
    }
  }

  /** Runs one round; ends with the first part that differs. */
  async #compareAll(pace: Pace, signal: AbortSignal): Promise<DriftTally | undefined> {
    const { clock, content } = this.#options;
    pace.begin();
    for (const words of content()) {
      const tally = new DriftTally();
      for (const text of words) tally.add('element', text);
      if (!tally.isEmpty) return tally;
      const pause = pace.afterPart();
      if (pause === undefined) continue;
      await clock.sleep(pause, signal);
      await this.#gate.free(signal);
      pace.beginTimeSlice();
    }
    return undefined;
  }

  /** Reports drift, unless an earlier report is being healed, and waits for the healing. */
  async #tell(tally: DriftTally, report: (drift: Drift) => void, signal: AbortSignal): Promise<void> {
    const { epoch } = this.#gate;
    if (this.#toldIn !== epoch) {
      this.#toldIn = epoch;
      report({ ...tally.summary(), process: undefined });
    }
    await this.#gate.passed(epoch, healLimit, signal);
    if (this.#gate.epoch === epoch) this.#toldIn = undefined;
  }
}
