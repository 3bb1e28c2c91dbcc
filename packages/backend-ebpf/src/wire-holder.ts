import type { Clock } from '@switchyard/core';
import type { Wire } from './assemble-backend.ts';
import type { MapSet } from './kernel/kernel.ts';
import type { OpenMapSet } from './open-map-set.ts';
import { type RemovalPlace, removeWire } from './wire/remove-wire.ts';
import { WirePath, type WirePathOptions } from './wire/wire-path.ts';

/** Where the wire path is, and who decides whether it is used. */
export interface WireHolderOptions extends Omit<WirePathOptions, 'maps'> {
  readonly maps: OpenMapSet;
  readonly clock: Clock;
  /** Rejects with `HostError` where it cannot be found out. */
  readonly isUsed: (signal: AbortSignal) => Promise<boolean>;
}

/** The wire path over the maps that are open: made when it is first needed, taken along when maps grow. */
export class WireHolder implements Wire {
  readonly #options: WireHolderOptions;
  #path: WirePath | undefined;
  #maps: MapSet | undefined;
  /** Of following the path there is now. */
  #end = new AbortController();
  /** Who follows and waits for a path. */
  readonly #waiting = new Set<() => void>();

  constructor(options: WireHolderOptions) {
    this.#options = options;
  }

  isUsed(signal: AbortSignal): Promise<boolean> {
    return this.#options.isUsed(signal);
  }

  /** As `WirePath.ensure`. */
  async ensure(signal: AbortSignal): Promise<number> {
    const maps = this.#options.maps.get();
    const path = (this.#path ??= new WirePath({ ...this.#options, maps }));
    for (const wake of this.#waiting) wake();
    const moved = this.#maps === undefined || this.#maps === maps ? 0 : await path.useMaps(maps, signal);
    this.#maps = maps;
    return moved + (await path.ensure(signal));
  }

  /** As `WirePath.findFaults`; none while it is not used. */
  async findFaults(signal: AbortSignal): Promise<readonly string[]> {
    return (await this.#path?.findFaults(signal)) ?? [];
  }

  /** New uplinks get the program, until aborted; idle while it is not used. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const path = this.#path;
      if (path === undefined) await this.#untilMade(signal);
      else await path.follow(AbortSignal.any([signal, this.#end.signal]));
    }
  }

  async remove(signal: AbortSignal): Promise<readonly string[]> {
    const path = this.#path;
    this.#forget();
    const place: RemovalPlace = this.#options;
    return path === undefined ? removeWire(place, signal) : path.remove(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const path = this.#path;
    this.#forget();
    await path?.[Symbol.asyncDispose]();
  }

  /** Resolves when there is a path, or when aborted. */
  async #untilMade(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = (): void => resolve();
    this.#waiting.add(wake);
    signal.addEventListener('abort', wake, { once: true });
    await promise;
    signal.removeEventListener('abort', wake);
    this.#waiting.delete(wake);
  }

  #forget(): void {
    this.#end.abort();
    this.#end = new AbortController();
    this.#path = undefined;
    this.#maps = undefined;
  }
}
