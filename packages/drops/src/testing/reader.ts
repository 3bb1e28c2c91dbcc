import { type Millis, millis } from '@switchyard/core';
import type { DropCounter, NewDrops, PlacedDrop } from '../kernel/drop-counter.ts';
import { LossReader, type LossSources } from '../loss-reader.ts';
import { nodeNetns } from './placed-drop.ts';

/** Time of readings, in milliseconds. */
export const now: Millis = millis(100_000);

/** A counter that gives these drops, one list a reading. */
export class FakeCounter implements DropCounter {
  isDisposed = false;
  readonly #readings: NewDrops[];

  constructor(...readings: readonly NewDrops[]) {
    this.#readings = [...readings];
  }

  read(): NewDrops {
    return this.#readings.shift() ?? { drops: [], missed: 0 };
  }

  [Symbol.dispose](): void {
    this.isDisposed = true;
  }
}

export const counted = (...drops: readonly PlacedDrop[]): NewDrops => ({ drops, missed: 0 });
/** Reads at `now`, and nothing of this machine. */
export function readerOf(sources: Partial<LossSources>): LossReader {
  return new LossReader({
    netns: nodeNetns,
    counter: undefined,
    readCounters: undefined,
    readFile: () => undefined,
    monotonic: () => now,
    ...sources,
  });
}
