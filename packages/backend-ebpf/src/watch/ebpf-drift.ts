import { type Clock, type Millis, millis, runTogether, seconds, untilBeat } from '@switchyard/core';
import { type Drift, type DriftKind } from '@switchyard/core/engine';
import { DriftTally } from '@switchyard/netfilter';
import { DriftGate } from './drift-gate.ts';
import { Pace } from './pace.ts';

/** Something that is not as we left it: what it is, and what happened to it in words an operator understands. */
export interface Fault {
  readonly kind: DriftKind;
  readonly text: string;
}

/** What is looked at. */
export interface EbpfDriftOptions {
  readonly clock: Clock;
  /** Looks that take a millisecond at most: links, pins, small maps, the guard table. Done every 400 ms, one after the other. */
  readonly looks: readonly ((signal: AbortSignal) => Promise<readonly Fault[]> | readonly Fault[])[];
  /**
   * Compares large maps with what was written: a part with each step, and what is wrong with it in words. A part takes less than
   * a millisecond, which is how long nothing else runs; all parts together are a round. Called anew for each round.
   */
  readonly content: () => Iterable<readonly string[]>;
}

/** So often what is cheap to look at is looked at: some 2 ms. */
const lookInterval: Millis = millis(400);
/** When nobody began to heal what was reported for so long, it is reported again. */
const healLimit: Millis = seconds(5);

/**
 * Notices what others do to programs, links, pins and maps. The kernel tells nobody of any of it but of pins, so it is looked at; how
 * often, and what that costs, stands in docs/design/ebpf-drift.md. Who did it cannot be known.
 */
export class EbpfDrift {
  readonly #options: EbpfDriftOptions;
  readonly #gate: DriftGate;
  /** The epoch in which something was reported last: the apply that heals it heals all that is found before it begins. */
  #toldIn: number | undefined;

  constructor(options: EbpfDriftOptions) {
    this.#options = options;
    this.#gate = new DriftGate(options.clock);
  }

  /** To be held while an apply, or anything else of ours that writes, is under way: what we do ourselves is no drift. */
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

  /** One round; what is wrong with the first part in which something is. */
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
      pace.beginStint();
    }
    return undefined;
  }

  /** Reports, unless what was reported before is about to be healed, and waits until it is. */
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
