import { DriftGate } from '@switchyard/netfilter';
import { type ChainKey, chainKey, chainOf, type ChainRef, type Change } from '../kernel/apply/change.ts';
import { KernelState } from '../kernel/apply/kernel-state.ts';
import { type Reading, readTable } from '../kernel/apply/read-kernel.ts';
import { type ChainDifference, compareStates } from '../kernel/compare-states.ts';
import { tableNames } from '../render/chains.ts';

export interface KnownKernel {
  /** Undefined while unknown. A new object after each full reading. */
  readonly state: KernelState | undefined;
  readonly reading: Reading;
}

/** Compares the kernel with the recorded state, outside of applies. */
export class LegacyLook {
  readonly #known: KnownKernel;
  readonly #gate = new DriftGate();
  /** Chains written since the look in progress began. */
  #written: Set<ChainKey> | undefined;

  constructor(known: KnownKernel) {
    this.#known = known;
  }

  /** An apply is under way until the result is disposed. */
  applying(): Disposable {
    return this.#gate.hold();
  }

  noteWritten(change: Change): void {
    this.#written?.add(keyOf(chainOf(change)));
  }

  /** Undefined when the recorded state is unknown or was replaced meanwhile. Leaves out chains written meanwhile. */
  async compare(signal: AbortSignal): Promise<readonly ChainDifference[] | undefined> {
    await this.#gate.free(signal);
    const { state: left, reading } = this.#known;
    if (left === undefined) return undefined;
    const written = new Set<ChainKey>();
    this.#written = written;
    try {
      const found = new KernelState();
      for (const table of tableNames) await readTable(reading, table, found, signal);
      await this.#gate.free(signal); // an apply in progress records its writes only at its end
      if (this.#known.state !== left) return undefined;
      return compareStates(left, found).filter(({ table, chain }) => !written.has(keyOf({ table, name: chain })));
    } finally {
      this.#written = undefined;
    }
  }
}

function keyOf({ table, name }: ChainRef): ChainKey {
  return chainKey(table, name);
}
