import type { Clock, Millis } from '@switchyard/core';

/**
 * Chains of Services that only rules of others may lead to: on large clusters all that are not wanted any more, elsewhere those that
 * the kernel would not remove. They go together, not before `syncPeriod` has passed since others went, as kube-proxy does it.
 */
export class StaleChains {
  readonly #clock: Clock;
  readonly #period: Millis;
  readonly #names = new Set<string>();
  #removed: Millis | undefined;

  constructor(clock: Clock, period: Millis) {
    this.#clock = clock;
    this.#period = period;
  }

  add(name: string): void {
    this.#names.add(name);
  }

  /** It is wanted again, or gone. */
  delete(name: string): void {
    this.#names.delete(name);
  }

  /** Those that are to go now: all or none. */
  due(): readonly string[] {
    if (this.#names.size === 0) return [];
    const now = this.#clock.monotonic();
    if (this.#removed !== undefined && now - this.#removed < this.#period) return [];
    return [...this.#names];
  }

  noteRemoved(): void {
    this.#removed = this.#clock.monotonic();
  }
}
