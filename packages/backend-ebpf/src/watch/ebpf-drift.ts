import { type Clock, type Millis, millis, runTogether, seconds, untilBeat } from '@switchyard/core';
import type { Drift, DriftKind } from '@switchyard/core/engine';
import { DriftGate, DriftTally } from '@switchyard/netfilter';

export interface Fault {
  readonly kind: DriftKind;
  readonly text: string;
}

export interface EbpfDriftOptions {
  readonly clock: Clock;
  /** Checks of at most a millisecond: links, pins, small maps, the guard table. Run every 800 ms, one after the other. */
  readonly looks: readonly ((signal: AbortSignal) => Promise<readonly Fault[]> | readonly Fault[])[];
  /** Yields differences of large maps from the record, a part of less than a millisecond per step; one call per round. */
  readonly content: () => Iterable<readonly string[]>;
}

/** Interval of the cheap checks, which take some 2 ms together, and of the rounds over large maps. */
const lookInterval: Millis = millis(800);
/** Time after which drift is reported again if no apply began to heal it. */
const healLimit: Millis = seconds(5);

/** Detects changes by other processes. The kernel sends events for pins only, so everything is polled. */
export class EbpfDrift {
  readonly #options: EbpfDriftOptions;
  readonly #gate = new DriftGate();
  /** Epoch of the last report: the apply that heals it heals everything found before it begins. */
  #toldIn: number | undefined;

  constructor(options: EbpfDriftOptions) {
    this.#options = options;
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
      if (tally === undefined) await this.#restAfter(pace, signal);
      else await this.#tell(tally, report, signal);
    }
  }

  /** Until the next look, to wake up once for both; longer after expensive rounds. */
  async #restAfter(pace: Pace, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const rest = pace.afterRound();
    await clock.sleep(rest > lookInterval ? rest : untilBeat(clock, lookInterval), signal);
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
    await this.#gate.passed(epoch, (until) => this.#options.clock.sleep(healLimit, until), signal);
    if (this.#gate.epoch === epoch) this.#toldIn = undefined;
  }
}

/** Maximum share of a CPU: expensive rounds begin less often, up to `longestRound`. */
const maxShare = 0.02;
const longestRound = 2500;
/** Number of rounds whose cost is remembered. */
const remembered = 8;
/** Length of a time slice in milliseconds: several parts in a row, because waking up costs as much as several of them. */
const timeSlice = 2;
/** Pause between two time slices, in which other work runs. Short, because a difference may show at the end of a round only. */
const pause: Millis = millis(3);

/** Divides a round into time slices with pauses, and sets the pause between rounds. */
class Pace {
  readonly #clock: Clock;
  #roundBegan = 0;
  #sliceBegan = 0;
  #spent = 0;
  readonly #recent: number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A round begins, and its first time slice. */
  begin(): void {
    this.#spent = 0;
    this.beginTimeSlice();
    this.#roundBegan = this.#sliceBegan;
  }

  beginTimeSlice(): void {
    this.#sliceBegan = this.#clock.monotonic();
  }

  /** Pause after a part; undefined if the next can follow at once. */
  afterPart(): Millis | undefined {
    const spent = this.#clock.monotonic() - this.#sliceBegan;
    if (spent < timeSlice) return undefined;
    this.#spent += spent;
    return pause;
  }

  afterRound(): Millis {
    const now = this.#clock.monotonic();
    this.#spent += now - this.#sliceBegan;
    // On a busy machine a time slice takes longer because other processes run, so the cheapest of some rounds is the best estimate.
    this.#recent.push(this.#spent);
    if (this.#recent.length > remembered) this.#recent.shift();
    const cost = Math.min(...this.#recent);
    const rest = Math.min(Math.max(lookInterval, cost / maxShare), longestRound) - (now - this.#roundBegan);
    return millis(Math.max(pause, rest));
  }
}
