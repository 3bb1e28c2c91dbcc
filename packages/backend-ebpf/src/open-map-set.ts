import { InvariantError } from '@switchyard/core';
import type { MapSet } from './kernel/kernel.ts';

/** The maps that are open at this moment, for all parts that use them: they are exchanged when they grow. */
export class OpenMapSet {
  #maps: MapSet | undefined;

  /** Throws `InvariantError` while none are open. */
  readonly get = (): MapSet => {
    if (this.#maps !== undefined) return this.#maps;
    throw new InvariantError('maps are used before they are open');
  };

  /** Undefined while none are open. */
  get current(): MapSet | undefined {
    return this.#maps;
  }

  set(maps: MapSet | undefined): void {
    this.#maps = maps;
  }
}
