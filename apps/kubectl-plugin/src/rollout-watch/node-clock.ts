import { millis, type Millis } from '@switchyard/core';

/** Rounding of a time that was written in whole milliseconds. */
const rounding = 1;

/**
 * Moves a node's times to this machine's clock. Each line bounds the difference of the clocks: the node wrote it after the request
 * was sent and before it arrived. The middle of the bounds is used.
 */
export class NodeClock {
  #least = Number.NEGATIVE_INFINITY;
  #most = Number.POSITIVE_INFINITY;

  /** Notes a line that the node wrote at `time` of its clock. `sent`: undefined if the line may have waited for long. */
  note(time: Millis, { sent, arrived }: { readonly sent: Millis | undefined; readonly arrived: Millis }): void {
    if (sent !== undefined) this.#least = Math.max(this.#least, sent - time - rounding);
    this.#most = Math.min(this.#most, arrived - time);
  }

  /** Largest error of a moved time. Undefined before the first line of a request. */
  get accuracy(): Millis | undefined {
    const half = (this.#most - this.#least) / 2;
    return Number.isFinite(half) ? millis(Math.max(0, half)) : undefined;
  }

  toHere(time: Millis): Millis {
    const apart = Number.isFinite(this.#least) ? (this.#least + this.#most) / 2 : this.#most;
    return millis(Number.isFinite(apart) ? time + apart : time);
  }
}
