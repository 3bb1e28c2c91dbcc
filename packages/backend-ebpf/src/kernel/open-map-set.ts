import { HostError } from '@switchyard/core';
import type { MapSet } from './kernel.ts';

/** The open maps, shared by all parts that use them. Growth replaces them. */
export class OpenMapSet {
  #maps: MapSet | undefined;

  /** Throws `HostError` while none are open: before the first apply, or after a removal. */
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
