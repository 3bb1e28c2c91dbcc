import { type Clock, type Millis, millis, runTogether, seconds, untilBeat } from '@switchyard/core';
import type { Drift, DriftKind } from '@switchyard/core/engine';
import { DriftGate, DriftTally } from '@switchyard/netfilter';
import type { FingerprintExtent } from '../kernel/kernel.ts';

export interface Fault {
  readonly kind: DriftKind;
  readonly text: string;
}

export interface EbpfDriftOptions {
  readonly clock: Clock;
  /** As `EbpfKernel.fingerprint`, of what `looks` and `content` read; undefined: they must look. A tenth of their cost. */
  readonly fingerprint: (extent: FingerprintExtent) => bigint | undefined;
  /** Checks of at most a millisecond: links, pins, small maps, the guard table. Run one after the other. */
  readonly looks: readonly ((signal: AbortSignal) => Promise<readonly Fault[]> | readonly Fault[])[];
  /** Yields differences of large maps from the record, a part of less than a millisecond per step; one call per round. */
  readonly content: () => Iterable<readonly string[]>;
}

/** Interval of fingerprints and looks. */
const lookInterval: Millis = millis(800);
/** Time without a look, longer where a look is expensive. */
const restOfLooks: Millis = seconds(30);
/** Maximum share of a CPU for looks while fingerprints stay the same. */
const idleShare = 0.001;
/** Time after which drift is reported again if no apply began to heal it. */
const healLimit: Millis = seconds(5);

/** Detects changes by other processes. The kernel sends events for pins only, so everything is polled. */
export class EbpfDrift {
  readonly #options: EbpfDriftOptions;
  readonly #gate = new DriftGate();
  readonly #pace: Pace;
  /** Epoch of the last report: the apply that heals it heals everything found before it begins. */
  #toldIn: number | undefined;
  /** Epoch of the last look. */
  #lookedIn: number | undefined;
  #right: Right | undefined;

  constructor(options: EbpfDriftOptions) {
    this.#options = options;
    this.#pace = new Pace(options.clock);
  }

  /** Hold it during an apply or any other write of this process, which is no drift. */
  hold(): Disposable {
    return this.#gate.hold();
  }

  /** As `BackendObservers.drift`. Rejects with the `HostError` of a look that failed. */
  async watch(report: (drift: Drift) => void, signal: AbortSignal): Promise<void> {
    await runTogether([(until) => this.#watch(report, until)], signal);
  }

  async #watch(report: (drift: Drift) => void, signal: AbortSignal): Promise<never> {
    const { clock } = this.#options;
    for (;;) {
      await this.#gate.free(signal);
      if (!this.#isQuiet()) await this.#lookAndTell(report, signal);
      await clock.sleep(untilBeat(clock, lookInterval), signal);
    }
  }

  /** Whether looks would find nothing new. */
  #isQuiet(): boolean {
    const { clock, fingerprint } = this.#options;
    const right = this.#right;
    if (right?.isSettled !== true || right.epoch !== this.#gate.epoch || clock.monotonic() >= right.until) return false;
    return fingerprint('part') === right.fingerprint;
  }

  async #lookAndTell(report: (drift: Drift) => void, signal: AbortSignal): Promise<void> {
    const { epoch } = this.#gate;
    const isWhole = this.#pace.isDue;
    // While each look follows an apply, no fingerprint would ever be compared.
    const isCompared = isWhole && this.#lookedIn === epoch;
    const fingerprint = isCompared ? this.#options.fingerprint('whole') : undefined;
    this.#lookedIn = epoch;
    const tally = await this.#look(isWhole, signal);
    if (isWhole || !tally.isEmpty) this.#note(tally.isEmpty ? fingerprint : undefined, epoch);
    if (this.#gate.epoch === epoch && !tally.isEmpty) await this.#tell(tally, report, signal);
  }

  /** Two looks must find nothing wrong: the kernel's clock for files could hide a change just after the first. */
  #note(fingerprint: bigint | undefined, epoch: number): void {
    const isSettled = this.#right?.fingerprint === fingerprint && this.#right?.epoch === epoch;
    const until = this.#options.clock.monotonic() + Math.max(restOfLooks, this.#pace.cost / idleShare);
    this.#right = fingerprint === undefined ? undefined : { fingerprint, epoch, until, isSettled };
  }

  /** `isWhole`: the content is compared too, which happens less often if that is expensive. */
  async #look(isWhole: boolean, signal: AbortSignal): Promise<DriftTally> {
    const tally = new DriftTally();
    for (const look of this.#options.looks) for (const { kind, text } of await look(signal)) tally.add(kind, text);
    return tally.isEmpty && isWhole ? this.#compareAll(signal) : tally;
  }

  /** Runs one round; ends with the first part that differs. */
  async #compareAll(signal: AbortSignal): Promise<DriftTally> {
    const { clock, content } = this.#options;
    this.#pace.begin();
    for (const words of content()) {
      const tally = new DriftTally();
      for (const text of words) tally.add('element', text);
      if (!tally.isEmpty) return tally;
      const pause = this.#pace.afterPart();
      if (pause === undefined) continue;
      await clock.sleep(pause, signal);
      await this.#gate.free(signal);
      this.#pace.beginTimeSlice();
    }
    this.#pace.end();
    return new DriftTally();
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

/** The fingerprint of a kernel in which two looks (`isSettled`), or one, found nothing wrong. */
interface Right {
  readonly fingerprint: bigint;
  readonly epoch: number;
  /** When a look is due without a change. */
  readonly until: number;
  readonly isSettled: boolean;
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

/** Divides a round into time slices with pauses, and says when the next is due. */
class Pace {
  readonly #clock: Clock;
  #roundBegan = 0;
  #sliceBegan = 0;
  #spent = 0;
  #dueAt = 0;
  readonly #recent: number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Of a round, in milliseconds of CPU. On a busy machine others make rounds longer, so the cheapest of some is the best estimate. */
  get cost(): number {
    return this.#recent.length === 0 ? 0 : Math.min(...this.#recent);
  }

  get isDue(): boolean {
    return this.#clock.monotonic() >= this.#dueAt;
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

  end(): void {
    this.#spent += this.#clock.monotonic() - this.#sliceBegan;
    this.#recent.push(this.#spent);
    if (this.#recent.length > remembered) this.#recent.shift();
    this.#dueAt = this.#roundBegan + Math.min(this.cost / maxShare, longestRound);
  }
}
