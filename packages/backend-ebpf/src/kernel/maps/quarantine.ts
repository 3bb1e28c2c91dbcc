import { type Clock, type Millis, millis } from '@switchyard/core';

/** Time before an id or range that programs may still read is allocated again: far longer than a program runs. */
export const quarantineTime: Millis = millis(1000);

/** Numbers that wait until no program can still use them, first in, first out. */
export class Quarantine {
  readonly #clock: Clock;
  #numbers: number[] = [];
  #due: number[] = [];
  #head = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#numbers.length - this.#head;
  }

  add(number: number): void {
    this.#numbers.push(number);
    this.#due.push(this.#clock.monotonic() + quarantineTime);
  }

  /** Passes the numbers whose time is over to `free`. */
  release(free: (number: number) => void): void {
    if (this.size === 0) return;
    const now = this.#clock.monotonic();
    while (this.size > 0 && (this.#due[this.#head] ?? 0) <= now) {
      free(this.#numbers[this.#head] ?? 0);
      this.#head++;
    }
    if (this.#head * 2 < this.#numbers.length) return;
    this.#numbers = this.#numbers.slice(this.#head);
    this.#due = this.#due.slice(this.#head);
    this.#head = 0;
  }
}
