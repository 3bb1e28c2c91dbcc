import type { Clock, Millis } from '@switchyard/core';

/**
 * Unlinked Service chains that wait for removal: on large clusters all unwanted chains, elsewhere those whose removal the kernel
 * refused. They are removed together, at most once per `syncPeriod`, as in kube-proxy.
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

  /** Forgets a chain that is wanted again or was removed. */
  delete(name: string): void {
    this.#names.delete(name);
  }

  /** Chains to remove now: all or none. */
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
