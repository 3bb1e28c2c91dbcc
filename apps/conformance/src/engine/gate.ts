/**
 * Bounds how many packets are under way at a time: a prober that is starved takes an answer for a drop. Whoever needs more than
 * all of it gets it alone.
 */
export class Gate {
  readonly #limit: number;
  #used = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Does `work`, which takes `count` places, when there is room. First come, first served. Work that has not begun when `signal`
   * aborts never does; what has begun must end by itself.
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
