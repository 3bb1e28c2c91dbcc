import type { ClusterEvent, ClusterStateSource } from '../model/state/cluster-event.ts';
import { UsageError } from '../base/errors.ts';

/**
 * A source a test feeds by hand. Batches wait until they are taken, each is delivered once and in
 * order; one reader at a time, as in production.
 */
export class MemorySource implements ClusterStateSource {
  #waiting: readonly (readonly ClusterEvent[])[] = [];
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  #isRead = false;

  /** Batches to deliver before any that are pushed. */
  constructor(...batches: readonly (readonly ClusterEvent[])[]) {
    this.#waiting = batches;
  }

  /** Delivers one more batch. */
  push(batch: readonly ClusterEvent[]): void {
    this.#waiting = [...this.#waiting, batch];
    this.#wake?.();
  }

  /** Makes the source end with `error` after what it still has: the failure it can never recover from. */
  fail(error: Error): void {
    this.#failure = error;
    this.#wake?.();
  }

  async *batches(signal: AbortSignal): AsyncGenerator<readonly ClusterEvent[], void, unknown> {
    if (this.#isRead) throw new UsageError('memorySource.reader', 'a MemorySource has one reader at a time');
    this.#isRead = true;
    try {
      while (!signal.aborted) {
        const [batch, ...rest] = this.#waiting;
        if (batch !== undefined) {
          this.#waiting = rest;
          yield batch;
        } else if (this.#failure !== undefined) throw this.#failure;
        else await this.#untilFed(signal);
      }
    } finally {
      this.#isRead = false;
    }
  }

  #untilFed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#wake = undefined;
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#wake = done;
      signal.addEventListener('abort', done, { once: true });
    });
  }
}
