import { constants } from 'node:os';
import { join } from 'node:path';
import type { IpFamily, Logger } from '@switchyard/core';
import {
  type Device,
  attachTc,
  type BpfLink,
  type BpfProgram,
  detachClsact,
  linkInfo,
  listPins,
  NativeError,
  openPinnedLink,
  pin,
  type TcLink,
  type TcMechanism,
  type TcPlace,
  unpin,
} from '@switchyard/native';
import { detachPinned } from '../programs/cgroup-hooks.ts';
import { FolderWatch } from '../programs/folder-watch.ts';
import { isSameProgram } from '../programs/same-program.ts';

export interface UplinkOptions {
  readonly ipFamily: IpFamily;
  readonly netns?: string | undefined;
  /** Folder in a bpffs, of this family alone. */
  readonly pinFolder: string;
  readonly logger: Logger;
  /** Default: links where the kernel has them (Linux 6.6), else filters. */
  readonly mechanism?: TcMechanism;
}

/** Prefix of the wire program's pins; the device's number follows. (Device names may have dots, names in bpffs may not.) */
export const pinPrefix = 'lb_in-';

/** Priorities of filters on kernels without tcx: one per family, so that they do not replace each other. */
export const filterPriorities: Readonly<Record<IpFamily, number>> = { IPv4: 0x5374, IPv6: 0x5376 };

/** Filters per look for faults, as without tcx each 800 ms has one: so many first ones, and of the others as many in turn. */
const filtersPerLook = 8;

interface Attached {
  readonly device: Device;
  readonly link: BpfLink | TcLink;
  /** The program that the link had after the last `put`. */
  readonly programId: number;
}

interface DeviceFault {
  readonly device: Device;
  readonly fault: string;
}

/** The wire program on each uplink. Links are pinned, so that they outlive the process and the next one adopts them. */
export class UplinkPrograms implements Disposable {
  readonly #options: UplinkOptions;
  readonly #attached = new Map<number, Attached>();
  readonly #pins = new FolderWatch();
  /** Each device was searched once for a filter of an earlier process. */
  #hasSwept = false;
  #compared: { readonly id: number; readonly wanted: number; readonly isSame: boolean } | undefined;
  /** Names of devices with a new program that are not logged yet. */
  readonly #fresh: string[] = [];
  #hasLogged = false;
  /** Start of the next look for faults among the filters after the first ones. */
  #looked = filtersPerLook;

  constructor(options: UplinkOptions) {
    this.#options = options;
  }

  get devices(): readonly Device[] {
    return [...this.#attached.values()].map(({ device }) => device);
  }

  /** Undefined where one of the programs is a filter, which has no descriptor. */
  get links(): readonly BpfLink[] | undefined {
    const links = Array.from(this.#attached.values(), ({ link }) => link);
    return links.some(isFilter) ? undefined : (links as readonly BpfLink[]); // no filter is left
  }

  /** Makes `program` run on these devices alone; links of earlier processes only get it. Throws `NativeError`. */
  put(program: BpfProgram, uplinks: readonly Device[], all: readonly Device[]): number {
    let writes = this.#forget(uplinks);
    const errors: Error[] = [];
    for (const device of uplinks) {
      try {
        writes += this.#putOn(program, device);
      } catch (error) {
        if (!(error instanceof NativeError)) throw error;
        if (error.errno !== constants.errno.ENODEV) errors.push(error); // ENODEV: the device was deleted
      }
    }
    this.#logFresh();
    const [first] = errors; // thrown after all other devices have the program
    if (first !== undefined) throw first;
    return writes + this.#sweepFilters(all);
  }

  /** Differences from the last `put`; of filters some per call. `readDevices` shows whether a device was deleted. */
  findFaults(uplinks: readonly Device[], readDevices: () => readonly Device[]): readonly string[] {
    const ofPins = this.#pins.faults(this.#options.pinFolder, () => this.#unpinned());
    const faults = [...this.#faultsOf(uplinks), ...ofPins];
    if (faults.length === 0) return [];
    const there = new Set(readDevices().map(({ index }) => index));
    return faults.flatMap(({ device, fault }) => (there.has(device.index) ? [fault] : []));
  }

  #faultsOf(uplinks: readonly Device[]): readonly DeviceFault[] {
    const start = this.#looked < uplinks.length ? this.#looked : filtersPerLook;
    this.#looked = start + filtersPerLook;
    const isInTurn = (index: number): boolean => index < filtersPerLook || (index >= start && index < this.#looked);
    return uplinks.flatMap((device, index) => {
      const is = (fault: string) => [{ device, fault }];
      const where = this.#where(device);
      const attached = this.#attached.get(device.index);
      if (attached === undefined) return is(`the wire program for ${where} is not there yet`);
      const { link, programId } = attached;
      if (isFilter(link) && !isInTurn(index)) return [];
      const found = stateOf(link, device);
      if (!found.isAttached) return is(`the wire program for ${where} was detached`);
      return found.programId === programId ? [] : is(`the wire program for ${where} was replaced`);
    });
  }

  #unpinned(): readonly DeviceFault[] {
    return [...this.#attached.values()].flatMap(({ device, link }) => {
      if (isFilter(link)) return [];
      using pinned = openPinnedLink(this.#pinOf(device.index));
      if (pinned?.id === link.id) return [];
      return [{ device, fault: `the link of the wire program for ${this.#where(device)} was unpinned` }];
    });
  }

  #where({ name }: Device): string {
    return `${this.#options.ipFamily} on ${name}`;
  }

  /** Closes links; they stay attached. */
  [Symbol.dispose](): void {
    for (const { link } of this.#attached.values()) link[Symbol.dispose]();
    this.#attached.clear();
  }

  #putOn(program: BpfProgram, device: Device): number {
    const known = this.#known(device);
    const link = known ?? this.#attach(program, device);
    let writes = known === undefined ? 1 : 0;
    try {
      if (!this.#isSame(link.programId, program)) {
        link.update(program);
        writes++;
      }
    } catch (error) {
      if (this.#attached.get(device.index)?.link !== link) link[Symbol.dispose]();
      throw error;
    }
    this.#attached.set(device.index, { device, link, programId: link.programId });
    return this.#pin(link, device) && known !== undefined ? writes + 1 : writes;
  }

  /** Keeps the last result, because links of an earlier process have the same program on all devices. */
  #isSame(id: number, program: BpfProgram): boolean {
    if (id === program.id) return true;
    const { id: wanted } = program;
    if (this.#compared?.id !== id || this.#compared.wanted !== wanted)
      this.#compared = { id, wanted, isSame: isSameProgram(id, program) };
    return this.#compared.isSame;
  }

  #attach(program: BpfProgram, { index, name }: Device): TcLink {
    const { mechanism } = this.#options;
    const link = attachTc(program, this.#placeOf(index), mechanism === undefined ? {} : { mechanism });
    this.#fresh.push(name);
    return link;
  }

  /** Logs all names once at the start; later devices are mostly those of new pods. */
  #logFresh(): void {
    const { ipFamily, logger } = this.#options;
    const devices = this.#fresh.splice(0);
    if (devices.length === 0) return;
    const level = this.#hasLogged ? 'debug' : 'info';
    this.#hasLogged = true;
    logger[level]('listening for Services on network devices', { ipFamily, devices });
  }

  /** The link that is attached to the device: ours, or one that an earlier process pinned. Others are let go. */
  #known(device: Device): BpfLink | undefined {
    const held = this.#attached.get(device.index)?.link;
    if (held !== undefined && isAttached(held, device)) return held;
    held?.[Symbol.dispose]();
    this.#attached.delete(device.index);
    const pinned = openPinnedLink(this.#pinOf(device.index));
    if (pinned === undefined || isAttached(pinned, device)) return pinned;
    pinned[Symbol.dispose]();
    return undefined;
  }

  /** Pins a link and returns whether it was not pinned before. */
  #pin(link: BpfLink, device: Device): boolean {
    if (isFilter(link)) return false; // a filter needs no pin
    const path = this.#pinOf(device.index);
    using pinned = openPinnedLink(path);
    if (pinned?.id === link.id) return false;
    pin(link, path, { replace: true });
    return true;
  }

  /** Detaches and unpins the programs of devices that are no uplinks any more, or were deleted. */
  #forget(uplinks: readonly Device[]): number {
    const wanted = new Set(uplinks.map(({ index }) => index));
    let writes = 0;
    for (const [index, { device, link }] of this.#attached) {
      if (wanted.has(index)) continue;
      if (isAttached(link, device)) link.detach();
      link[Symbol.dispose]();
      this.#attached.delete(index);
    }
    for (const name of listPins(this.#options.pinFolder)) {
      if (!name.startsWith(pinPrefix) || wanted.has(Number(name.slice(pinPrefix.length)))) continue;
      const path = join(this.#options.pinFolder, name);
      detachPinned(path);
      if (unpin(path)) writes++;
    }
    return writes;
  }

  /** On kernels without tcx links: removes filters from devices that were uplinks of an earlier process, which have no pin. */
  #sweepFilters(all: readonly Device[]): number {
    if (this.#hasSwept || ![...this.#attached.values()].some(({ link }) => isFilter(link))) return 0;
    const others = all.filter(({ index }) => !this.#attached.has(index));
    const writes = others.filter(({ index }) => detachClsact(this.#placeOf(index))).length;
    this.#hasSwept = true;
    return writes;
  }

  #placeOf(index: number): TcPlace {
    const { netns, ipFamily } = this.#options;
    return { ifindex: index, priority: filterPriorities[ipFamily], netns };
  }

  #pinOf(index: number): string {
    return join(this.#options.pinFolder, `${pinPrefix}${index}`);
  }
}

/** Whether it is a clsact filter, which cannot be pinned, and no link. */
function isFilter(link: BpfLink | TcLink): boolean {
  return 'mechanism' in link && link.mechanism === 'clsact';
}

function isAttached(link: BpfLink | TcLink, device: Device): boolean {
  return stateOf(link, device).isAttached;
}

/** Reads the state from the kernel with one request. */
function stateOf(
  link: BpfLink | TcLink,
  { index }: Device,
): { readonly isAttached: boolean; readonly programId: number } {
  if (!isFilter(link)) {
    const { ifindex, programId } = linkInfo(link);
    return { isAttached: ifindex === index, programId };
  }
  const { programId } = link;
  return { isAttached: programId !== 0, programId };
}
