import type { Clock, PodDetector } from '@switchyard/core';
import type { Wire } from '../../assemble-backend.ts';
import type { MapSet } from '../kernel.ts';
import type { OpenMapSet } from '../open-map-set.ts';
import { bridgesForRules, type Network, readNetwork } from './devices.ts';
import { type RemovalPlace, removeWire } from './remove-wire.ts';
import { WirePath, type WirePathOptions } from './wire-path.ts';

/** Where the wire path is, and who decides whether it is used. */
export interface WireHolderOptions extends Omit<WirePathOptions, 'maps' | 'podDetector'> {
  readonly maps: OpenMapSet;
  readonly clock: Clock;
  /** Rejects with `HostError` where it cannot be found out. */
  readonly isUsed: (signal: AbortSignal) => Promise<boolean>;
  /** Default: asks the kernel. For tests. */
  readonly read?: () => Network;
}

/** The wire path over the maps that are open: made when it is first needed, taken along when maps grow. */
export class WireHolder implements Wire {
  readonly #options: WireHolderOptions;
  #path: WirePath | undefined;
  #maps: MapSet | undefined;
  #podDetector: PodDetector = { kind: 'none' };
  #needsRules = false;
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

  /** As `WireState.needsRules`. Stays true: containers come and go with the ports of their bridge, and rules need not. */
  async needsRules(podDetector: PodDetector): Promise<boolean> {
    const { ipFamily, netns, logger, read = () => readNetwork(ipFamily, netns) } = this.#options;
    this.#podDetector = podDetector;
    if (this.#needsRules) return true;
    const bridges = this.#bridges(read());
    if (bridges.length === 0) return false;
    logger.info('rules serve packets that enter by bridges', { ipFamily, bridges });
    this.#needsRules = true;
    return true;
  }

  /** As `WirePath.ensure`. */
  async ensure(signal: AbortSignal): Promise<number> {
    const maps = this.#options.maps.get();
    const podDetector = (): PodDetector => this.#podDetector;
    const path = (this.#path ??= new WirePath({ ...this.#options, podDetector, maps }));
    for (const wake of this.#waiting) wake();
    const moved = this.#maps === undefined || this.#maps === maps ? 0 : await path.useMaps(maps, signal);
    this.#maps = maps;
    return moved + (await path.ensure(signal));
  }

  /** As `WirePath.findFaults`, and a bridge that came since rules were written; none while it is not used. */
  async findFaults(signal: AbortSignal): Promise<readonly string[]> {
    const path = this.#path;
    if (path === undefined) return [];
    const faults = await path.findFaults(signal);
    const bridges = this.#needsRules ? [] : this.#bridges(path.network);
    return [...faults, ...bridges.map((name) => `rules do not serve the bridge ${name} yet, which is new`)];
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

  #bridges(network: Network): readonly string[] {
    const { interfaces: patterns } = this.#options;
    return bridgesForRules(network, { patterns, podDetector: this.#podDetector }).map(({ name }) => name);
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
