import type { Drift } from '@switchyard/core/engine';
import { DriftTally } from './drift-tally.ts';
import type { Generation } from './notices.ts';

/** Accumulates the changes of whole foreign transactions until they are taken. */
export class DriftReport {
  #tally = new DriftTally();
  #process: Drift['process'];
  #lastGeneration = -1;

  /** Whether this generation is new: notices arrive twice when sockets overlap. */
  isNew({ id }: Generation): boolean {
    const isRepeated = (this.#lastGeneration - id) >>> 0 < 0x10000;
    if (!isRepeated) this.#lastGeneration = id;
    return !isRepeated;
  }

  /** Adds one transaction; the report names the process of the first one. */
  add(transaction: DriftTally, { pid, name }: Generation): void {
    if (this.#tally.isEmpty && pid !== 0) this.#process = { pid, name };
    this.#tally.merge(transaction);
  }

  /** Notices were lost. */
  addLoss(): void {
    this.#tally.add('unknown', 'too many changes at once: notices were lost');
  }

  /** Takes all changes since the last call; undefined for none. */
  take(): Drift | undefined {
    if (this.#tally.isEmpty) return undefined;
    const drift = { ...this.#tally.summary(), process: this.#process };
    this.#tally = new DriftTally();
    this.#process = undefined;
    return drift;
  }
}
