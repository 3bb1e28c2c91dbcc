import { join } from 'node:path';
import { HostError, type IpFamily, InvariantError } from '@switchyard/core';
import {
  type BpfLink,
  type BpfMap,
  type BpfMapShape,
  type BpfObject,
  type BpfProgram,
  type CgroupHook,
  createMap,
  fingerprint,
  hasSetRetval,
  isBpffs,
  loadBpfObject,
  MapWatch,
  mountBpffs,
  openPinnedMap,
  pin,
} from '@switchyard/native';
import type { SocketLb } from '../host.ts';
import { layoutVersion, type MapName, type MapSizes, mapShapes, mapSizes } from '../../render/layouts.ts';
import {
  type AttachedHook,
  detachOrder,
  detachPinned,
  ensureHook,
  HookWatch,
  inOrder,
  updateHook,
} from './cgroup-hooks.ts';
import {
  type EbpfKernel,
  type FingerprintExtent,
  hooksOf,
  type KernelFaults,
  type MapSet,
  type OpenedMaps,
} from '../kernel.ts';
import { closeMaps, copyMap, mapNames, mapSetOf, sizesOf, tooSmall } from './map-sets.ts';
import { FolderWatch } from './folder-watch.ts';
import { objectFile } from './object-files.ts';
import { PinFolders } from './pin-folders.ts';
import { type OthersOptions, OthersWatch } from './other-load-balancers.ts';

export interface LinuxKernelOptions extends OthersOptions {
  /** Folder of cgroup2 below which sockets are served. Called only to attach programs: a clean-up needs no cgroup. */
  readonly cgroup: () => string;
  readonly socketLb: SocketLb;
  /** Path of the compiled socket programs; default: this build's. */
  readonly object?: string;
  /** Layout version; tests use others than this build's. */
  readonly version?: number;
}

/** One family in the kernel. A process may be killed at any line; the next one continues from what it finds. */
export class LinuxKernel implements EbpfKernel {
  readonly ipFamily: IpFamily;
  readonly #options: LinuxKernelOptions;
  readonly #pins: PinFolders;
  readonly #others: OthersWatch;
  readonly #hooks: HookWatch;
  readonly #mapPins = new FolderWatch();
  readonly #frontends = new MapWatch();
  #maps: MapSet | undefined;
  #looked: MapSet | undefined;
  #attached: readonly AttachedHook[] = [];

  constructor(options: LinuxKernelOptions) {
    const { ipFamily, bpffs, version = layoutVersion } = options;
    this.ipFamily = ipFamily;
    this.#options = options;
    this.#pins = new PinFolders({ bpffs, ipFamily, version });
    this.#hooks = new HookWatch(this.#pins);
    this.#others = new OthersWatch(options);
  }

  async openMaps(sizes: MapSizes, signal: AbortSignal): Promise<OpenedMaps> {
    signal.throwIfAborted();
    const { bpffs, logger } = this.#options;
    if (mountBpffs(bpffs)) logger.info('bpffs mounted', { path: bpffs });
    this.#pins.settle();
    const held = this.#maps;
    if (held !== undefined) {
      if (this.#unpinned(held).length > 0) this.#install(held);
      return { maps: await this.growMaps(sizes, signal), isNew: false };
    }
    this.#forgetLooked();
    const found = this.#openPinned();
    if (found === undefined) {
      const shapes = mapShapes(sizes);
      using made = new DisposableStack(); // this is retried, so a failure must leave no map open
      const maps = mapSetOf((name) => made.use(createMap(shapes[name])));
      this.#install(maps);
      made.move();
      this.#maps = maps;
      return { maps, isNew: true };
    }
    this.#maps = found;
    return { maps: await this.growMaps(sizes, signal), isNew: false };
  }

  async findMaps(signal: AbortSignal): Promise<MapSet | undefined> {
    signal.throwIfAborted();
    if (this.#maps !== undefined) return this.#maps;
    // Not kept: until this process writes, another one may replace the pinned maps.
    this.#forgetLooked();
    this.#looked = isBpffs(this.#options.bpffs) ? this.#openPinned() : undefined;
    return this.#looked;
  }

  async growMaps(sizes: MapSizes, signal: AbortSignal): Promise<MapSet> {
    signal.throwIfAborted();
    const maps = this.#maps;
    if (maps === undefined) throw new InvariantError('maps cannot grow before they are open');
    const small = tooSmall(maps, sizes);
    if (small.length === 0) return maps;
    const shapes = mapShapes(mapSizes((name) => Math.max(sizesOf(maps)[name], sizes[name])));
    using made = new DisposableStack();
    const grown = mapSetOf((name) => (small.includes(name) ? made.use(createMap(shapes[name])) : maps[name]));
    for (const name of small) copyMap(maps[name], grown[name]);
    using object = this.#load(grown);
    const updated = this.#programs(object).map(([hook, program]) => updateHook(this.#pins, hook, program));
    this.#install(grown);
    made.move();
    // Recorded last: `attach` finds and repairs a failure halfway.
    for (const attached of updated) if (attached !== undefined) this.#note(attached);
    this.#maps = grown;
    for (const name of small) maps[name][Symbol.dispose]();
    this.#options.logger.info('maps have grown', { ipFamily: this.ipFamily, maps: small, ...sizesOf(grown) });
    return grown;
  }

  async attach(signal: AbortSignal): Promise<number> {
    signal.throwIfAborted();
    const { logger } = this.#options;
    if (this.#maps === undefined) throw new InvariantError('programs cannot be attached before maps are open');
    const cgroup = this.#options.cgroup();
    if (this.#attached.length > 0 && (await this.findFaults(signal)).length === 0) return 0; // loading takes 10 ms
    if (this.#attached.length === 0) this.#others.refuse(cgroup);
    using object = this.#load(this.#maps);
    const attached: AttachedHook[] = [];
    let writes = 0;
    for (const [hook, program] of this.#programs(object)) {
      const ensured = ensureHook({ pins: this.#pins, cgroup }, hook, program);
      attached.push(ensured.attached);
      writes += ensured.writes;
    }
    this.#hooks[Symbol.dispose](); // a hook may have another link
    this.#attached = attached;
    if (writes > 0) logger.info('socket programs attached', { ipFamily: this.ipFamily, cgroup, changes: writes });
    return writes;
  }

  async removeOtherVersions(signal: AbortSignal): Promise<number> {
    signal.throwIfAborted();
    const others = this.#pins.others();
    for (const folder of others) this.#removeFolder(folder);
    return others.length;
  }

  async findFaults(signal: AbortSignal): Promise<KernelFaults> {
    signal.throwIfAborted();
    const maps = this.#maps;
    if (maps === undefined) return [];
    if (this.#attached.length > 0) this.#others.notice(this.#options.cgroup());
    return [
      ...this.#hooks.faults(this.#attached),
      ...this.#mapPins.faults(this.#pins.maps, () =>
        this.#unpinned(maps).map((name) => `map ${name} unpinned or replaced`),
      ),
    ];
  }

  fingerprint(links: readonly BpfLink[], extent: FingerprintExtent): bigint | undefined {
    if (this.#maps === undefined || this.#attached.length === 0) return undefined;
    const { frontends, source_ranges, configuration, node_addresses, pod_cidrs, masq_addresses } = this.#maps;
    if (extent === 'whole') this.#frontends.read(frontends);
    else if (!this.#frontends.isSame(frontends)) return undefined;
    return fingerprint({
      links: [...this.#hooks.held, ...links],
      maps: [source_ranges, configuration, node_addresses, pod_cidrs, masq_addresses],
      folders: [this.#pins.links, this.#pins.maps],
    });
  }

  async remove(signal: AbortSignal): Promise<readonly string[]> {
    signal.throwIfAborted();
    this.#close();
    const removed: string[] = [];
    for (const folder of this.#pins.all()) {
      this.#removeFolder(folder);
      removed.push(`eBPF programs and maps of ${this.ipFamily} pinned in ${folder}`);
    }
    return removed;
  }

  /** Forwarding stays. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#close();
  }

  #forgetLooked(): void {
    if (this.#looked !== undefined) closeMaps(this.#looked);
    this.#looked = undefined;
  }

  #close(): void {
    this.#forgetLooked();
    if (this.#maps !== undefined) closeMaps(this.#maps);
    this.#maps = undefined;
    this.#hooks[Symbol.dispose]();
    this.#attached = [];
  }

  /** Detaches links first. Where they cannot be opened, as without libbpf, removing their pins detaches them too. */
  #removeFolder(folder: string): void {
    for (const path of detachOrder(this.#pins.linksIn(folder))) {
      try {
        detachPinned(path);
      } catch (error) {
        this.#options.logger.debug('a link is unpinned without being detached', { path, error });
      }
      this.#pins.unpin(path);
    }
    this.#pins.remove(folder);
  }

  #load(maps: MapSet): BpfObject {
    const { ipFamily, socketLb, object = objectFile('socket') } = this.#options;
    const hooks: readonly string[] = hooksOf[ipFamily];
    return loadBpfObject(object, {
      maps: new Map(Object.entries(maps)),
      constants: {
        family: ipFamily === 'IPv4' ? 4 : 6,
        socket_scope: socketLb === 'host' ? 1 : 0,
        has_set_retval: hasSetRetval() ? 1 : 0,
      },
      skip: hooksOf.IPv4.filter((hook) => !hooks.includes(hook)),
    });
  }

  #programs(object: BpfObject): readonly (readonly [CgroupHook, BpfProgram])[] {
    return inOrder(hooksOf[this.ipFamily]).map((hook) => {
      const program = object.programs.get(hook);
      if (program === undefined) throw new InvariantError(`the socket programs have no program ${hook}`);
      return [hook, program];
    });
  }

  #note(attached: AttachedHook): void {
    this.#attached = this.#attached.map((one) => (one.hook === attached.hook ? attached : one));
  }

  /** Pins a whole set in place of the pinned one. */
  #install(maps: MapSet): void {
    this.#pins.beginMaps();
    for (const name of mapNames) pin(maps[name], join(this.#pins.nextMaps, name));
    this.#pins.commitMaps();
  }

  /** Undefined if a map is missing or has another layout: then a new set is made beside the one that programs use. */
  #openPinned(): MapSet | undefined {
    const shapes = mapShapes(mapSizes(() => 1));
    const opened = new Map<MapName, BpfMap>();
    for (const name of mapNames) {
      const map = this.#tryOpen(name, shapes[name]);
      if (map !== undefined) opened.set(name, map);
    }
    if (opened.size === mapNames.length) return mapSetOf((name) => opened.get(name) as BpfMap); // all are there
    for (const map of opened.values()) map[Symbol.dispose]();
    return undefined;
  }

  #tryOpen(name: MapName, shape: BpfMapShape): BpfMap | undefined {
    const path = join(this.#pins.maps, name);
    try {
      return openPinnedMap(path, shape);
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      this.#options.logger.warn('a pinned map cannot be used; all maps are made anew', { path, error });
      return undefined;
    }
  }

  #unpinned(maps: MapSet): readonly MapName[] {
    return mapNames.filter((name) => !this.#isPinned(name, maps[name]));
  }

  #isPinned(name: MapName, map: BpfMap): boolean {
    try {
      using pinned = openPinnedMap(join(this.#pins.maps, name));
      return pinned?.id === map.id;
    } catch {
      return false; // another object is pinned there
    }
  }
}
