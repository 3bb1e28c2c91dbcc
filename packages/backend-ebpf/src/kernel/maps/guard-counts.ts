import type { IpAddress } from '@switchyard/core';

/** How many Services want the guard of each cluster IP: ports of one Service share it. */
export class GuardCounts {
  readonly #counts = new Map<IpAddress, number>();
  #stale: IpAddress[] = [];

  add(guards: readonly IpAddress[]): void {
    for (const guard of guards) this.#counts.set(guard, (this.#counts.get(guard) ?? 0) + 1);
  }

  remove(guards: readonly IpAddress[]): void {
    for (const guard of guards) {
      const count = (this.#counts.get(guard) ?? 0) - 1;
      if (count > 0) this.#counts.set(guard, count);
      else this.#counts.delete(guard);
    }
  }

  clear(): void {
    this.#counts.clear();
    this.#stale = [];
  }

  /** Records an unwanted guard that could not be deleted. */
  noteStale(guard: IpAddress): void {
    this.#stale.push(guard);
  }

  /** Returns the recorded guards and clears the record. */
  drainStale(): readonly IpAddress[] {
    const stale = this.#stale;
    this.#stale = [];
    return stale;
  }

  has(guard: IpAddress): boolean {
    return this.#counts.has(guard);
  }
}
