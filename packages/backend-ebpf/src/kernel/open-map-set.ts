import { HostError } from '@switchyard/core';
import type { MapSet } from './kernel.ts';

/** The maps that are open at this moment, for all parts that use them: they are exchanged when they grow. */
export class OpenMapSet {
  #maps: MapSet | undefined;

  /** Throws `HostError` while none are open: not yet, or not any more for who follows the kernel beside a removal. */
  readonly get = (): MapSet => {
    if (this.#maps !== undefined) return this.#maps;
    throw new HostError('ebpf.closed', 'no BPF maps are open: they are opened by the next apply');
  };

  /** Undefined while none are open. */
  get current(): MapSet | undefined {
    return this.#maps;
  }

  set(maps: MapSet | undefined): void {
    this.#maps = maps;
  }
}
