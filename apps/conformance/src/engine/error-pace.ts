import { type Clock, ipFamilyOf, millis, systemClock } from '@switchyard/core';
import type { ScenarioFlow } from '@switchyard/scenarios';
import type { TestEnvironment } from '../model/test-environment.ts';
import type { ErrorLimits } from './probe-flow.ts';

/** Linux allows each receiver an ICMP error a second, once the first six are used up. */
const interval = 1100;

/** Counts and paces the ICMP errors of the node under test, for all cases that an environment runs at a time. */
export class ErrorPace {
  readonly #environment: Pick<TestEnvironment, 'icmpErrorsHeldBack'>;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #silent: Promise<unknown>[] = [];
  #next: Promise<number | undefined> | undefined;
  #reading: Promise<unknown> = Promise.resolve();

  constructor(
    environment: Pick<TestEnvironment, 'icmpErrorsHeldBack'>,
    signal: AbortSignal,
    clock: Clock = systemClock,
  ) {
    this.#environment = environment;
    this.#signal = signal;
    this.#clock = clock;
  }

  /** The limits for this flow's sender. */
  limitsFor(flow: ScenarioFlow): ErrorLimits {
    const receiver = `${flow.fromEndpoint ?? flow.from} ${ipFamilyOf(flow.to)}`;
    return { heldBack: () => this.#heldBack(), paced: (work) => this.#paced(receiver, work) };
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

  async #paced<T>(receiver: string, work: () => Promise<T>): Promise<T> {
    const turn = this.#turns.get(receiver) ?? Promise.resolve();
    const mine = turn.then(async () => {
      await this.#clock.sleep(millis(interval), this.#signal);
      return work();
    });
    this.#turns.set(
      receiver,
      mine.catch(() => undefined), // the caller gets the error
    );
    return mine;
  }
}
