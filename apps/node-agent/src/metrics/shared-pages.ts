import { HostError } from '@switchyard/core';
import { formatFor, type MetricsFormat } from '@switchyard/host';
import type { MetricsPage } from './metrics-page.ts';

/** A page that several clients read, each at its own pace. */
export interface SharedText {
  /** For the header of this name. */
  readonly contentType: string;
  /** Iterated at most once. Throws `SlowReaderError` when newer pages take the memory. */
  readonly pieces: AsyncIterable<Uint8Array>;
}

/** A client read so slowly that newer pages replaced its page; its connection is closed. Not logged. */
export class SlowReaderError extends HostError {
  override readonly name = 'SlowReaderError';
}

interface Page {
  readonly contentType: string;
  /** Emptied when the page is discarded. */
  pieces: readonly Uint8Array[];
  readers: number;
}

/** A page that is created after the previous one. */
interface Order {
  readonly page: Promise<Page>;
  readonly stop: AbortController;
  waiting: number;
}

/** Maximum number of pages in memory, without the one in progress. */
const maxPages = 4;

/**
 * Bounds the cost of any number of clients of `/metrics`: only one page at a time is created. Requests that arrive before it
 * begins share it; later ones get the next page, so that a page is never older than its request.
 */
export class SharedPages {
  readonly #source: Pick<MetricsPage, 'metricsText'>;
  /** Orders that have not begun yet. */
  readonly #orders = new Map<MetricsFormat, Order>();
  #done: Promise<unknown> = Promise.resolve();
  /** Pages with readers, oldest first. */
  readonly #pages = new Set<Page>();

  constructor(source: Pick<MetricsPage, 'metricsText'>) {
    this.#source = source;
  }

  /** Text of the page in the format of the `Accept` header. Rejects as `MetricsPage.metricsText` does. */
  async metricsText(accept: string | undefined, signal: AbortSignal): Promise<SharedText> {
    const format = formatFor(accept);
    const order = this.#orders.get(format) ?? this.#order(format, accept);
    order.waiting++;
    const leave = (): void => {
      if (--order.waiting === 0) order.stop.abort(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      const page = await order.page;
      return { contentType: page.contentType, pieces: this.#read(page) };
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  #order(format: MetricsFormat, accept: string | undefined): Order {
    const stop = new AbortController();
    const page = this.#done.then(() => {
      this.#orders.delete(format);
      return this.#make(accept, stop.signal);
    });
    this.#done = page.catch(() => undefined); // those who wait for it see the failure
    const order = { page, stop, waiting: 0 };
    this.#orders.set(format, order);
    return order;
  }

  async #make(accept: string | undefined, signal: AbortSignal): Promise<Page> {
    signal.throwIfAborted();
    const { contentType, pieces } = await this.#source.metricsText(accept, signal);
    const made: Uint8Array[] = [];
    for await (const piece of pieces) made.push(Buffer.from(piece));
    return { contentType, pieces: made, readers: 0 };
  }

  async *#read(page: Page): AsyncGenerator<Uint8Array, void, undefined> {
    page.readers++;
    this.#pages.add(page);
    const [oldest] = this.#pages;
    if (this.#pages.size > maxPages && oldest !== undefined) {
      oldest.pieces = [];
      this.#pages.delete(oldest);
    }
    try {
      const { length } = page.pieces;
      for (let index = 0; index < length; index++) {
        const piece = page.pieces[index];
        if (piece === undefined)
          throw new SlowReaderError('http.slowReader', 'newer pages took the memory of this one');
        yield piece;
      }
    } finally {
      if (--page.readers === 0) this.#pages.delete(page);
    }
  }
}
