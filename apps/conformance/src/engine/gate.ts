/**
 * Bounds the number of packets in flight: a prober without enough CPU takes an answer for a drop. Work that needs more places than
 * the limit runs alone.
 */
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
