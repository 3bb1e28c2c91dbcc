import { type Clock, ipFamilyOf, millis, systemClock } from '@switchyard/core';
import { type ScenarioFlow, dataplaneNamed, type DataplaneName } from '@switchyard/scenarios';
import type { ErrorLimits } from './probe-flow.ts';
import type { TestEnvironment } from '../model/test-environment.ts';

/** Linux allows each receiver an ICMP error a second, once the first six are used up. */
const interval = 1100;

type ErrorCounts = Pick<TestEnvironment, 'icmpErrorsHeldBack'>;

/** Counts and paces the ICMP errors of the node under test, for all cases that an environment runs at a time. */
export class ErrorPace {
  readonly #environment: ErrorCounts;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #silent: Promise<unknown>[] = [];
  #next: Promise<number | undefined> | undefined;
  #reading: Promise<unknown> = Promise.resolve();

  constructor(environment: ErrorCounts, signal: AbortSignal, clock: Clock = systemClock) {
    this.#environment = environment;
    this.#signal = signal;
    this.#clock = clock;
  }

  limitsFor(flow: ScenarioFlow): ErrorLimits {
    const receiver = `${flow.fromEndpoint ?? flow.from} ${ipFamilyOf(flow.to)}`;
    const paced = <T>(work: () => Promise<T>): Promise<T> =>
      takeTurn(this.#turns, receiver, async () => {
        await this.#clock.sleep(millis(interval), this.#signal);
        return work();
      });
    return { heldBack: () => this.#heldBack(), paced };
  }

  /** Registers work that expects silence. `afterSilence` waits for it, because suppressed errors would make its result ambiguous. */
  noteSilent(work: Promise<unknown>): void {
    this.#silent.push(work.catch(() => undefined)); // the caller gets the error
  }

  /** Resolves when all work is done that expects silence and was noted in the same turn of the event loop or before. */
  async afterSilence(): Promise<void> {
    await Promise.resolve();
    await Promise.all(this.#silent);
  }

  /** A count that is read after the call; calls that wait for a reading share the next one. */
  #heldBack(): Promise<number | undefined> {
    this.#next ??= this.#reading.then(() => {
      this.#next = undefined;
      const reading = this.#environment.icmpErrorsHeldBack(this.#signal);
      this.#reading = reading.catch(() => undefined); // its callers get the error
      return reading;
    });
    return this.#next;
  }
}

/** Runs work one at a time for each key, in the order of the calls. */
export function takeTurn<K, T>(
  turns: { get(key: K): Promise<unknown> | undefined; set(key: K, turn: Promise<unknown>): unknown },
  key: K,
  work: () => Promise<T>,
): Promise<T> {
  const mine = (turns.get(key) ?? Promise.resolve()).then(work);
  turns.set(
    key,
    mine.catch(() => undefined), // the caller gets the error
  );
  return mine;
}

/** Bounds the number of packets in flight: a prober without enough CPU takes an answer for a drop. Work that needs more places than the limit runs alone. */
export class Gate {
  readonly #limit: number;
  #used = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Runs `work`, which takes `count` places, when there is room, in the order of the calls. If `signal` aborts before the start, `work`
   * does not run; running work must end on its own.
   */
  async run<T>(count: number, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const places = Math.min(count, this.#limit);
    if (this.#waiting.length > 0 || this.#used + places > this.#limit) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
      while (this.#used + places > this.#limit) {
        await new Promise<void>((resolve) => this.#waiting.unshift(resolve));
      }
    }
    this.#used += places;
    this.#wake();
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      this.#used -= places;
      this.#wake();
    }
  }

  #wake(): void {
    if (this.#used < this.#limit) this.#waiting.shift()?.();
  }
}

/**
 * Number of markers that must answer one after the other until the proxy has applied everything written before the first. Where the kernel's state
 * is not one transaction (tables of iptables, maps of eBPF) the second, which is only seen after the first one's round, shows that
 * this has ended.
 */
export function markerRounds(dataplane: DataplaneName): number {
  return dataplaneNamed(dataplane).atomicity === 'transaction' ? 1 : 2;
}
