import { join } from 'node:path';
import type { IpFamily, Logger } from '@switchyard/core';
import {
  attachTc,
  type BpfLink,
  type BpfProgram,
  linkInfo,
  listPins,
  openPinnedLink,
  pin,
  type TcLink,
  unpin,
} from '@switchyard/native';
import { isSameProgram } from '../kernel/same-program.ts';
import type { Device } from './rtnetlink.ts';

/** Where programs are attached, and where links are pinned. */
export interface UplinkOptions {
  readonly ipFamily: IpFamily;
  /** Path of the network namespace of the uplinks; default: the process's own. */
  readonly netns?: string;
  /** Folder in a bpffs, of this family alone. */
  readonly pinFolder: string;
  readonly logger: Logger;
}

/** Pins of the wire program begin so; the device's number follows. (Names in bpffs may not hold dots, those of devices may.) */
export const pinPrefix = 'lb_in-';

/** Places of filters on kernels without tcx: one per family, so that they do not take each other's. */
export const filterPriorities: Readonly<Record<IpFamily, number>> = { IPv4: 0x5374, IPv6: 0x5376 };

interface Attached {
  readonly device: Device;
  readonly link: BpfLink | TcLink;
}

/** The wire program on each uplink. Links are pinned, so that they outlive the process and the next one finds them. */
export class UplinkPrograms implements Disposable {
  readonly #options: UplinkOptions;
  readonly #attached = new Map<number, Attached>();

  constructor(options: UplinkOptions) {
    this.#options = options;
  }

  /** The devices that have the program. */
  get devices(): readonly Device[] {
    return [...this.#attached.values()].map(({ device }) => device);
  }

  /**
   * Makes `program` the one that runs on these devices and on no others. Links of an earlier process or of another build only get
   * another program, at once. Returns writes. Throws `NativeError`.
   */
  put(program: BpfProgram, uplinks: readonly Device[]): number {
    let writes = this.#forget(uplinks);
    for (const device of uplinks) writes += this.#putOn(program, device);
    return writes;
  }

  /** In words; empty when all is as `put` left it. Two system calls for each device. */
  findFaults(program: BpfProgram): readonly string[] {
    return [...this.#attached.values()].flatMap(({ device, link }) => {
      const where = `${this.#options.ipFamily} on ${device.name}`;
      if (!isAttached(link, device)) return [`the wire program for ${where} was detached`];
      if (link.programId !== program.id) return [`the wire program for ${where} was replaced`];
      if (isFilter(link)) return [];
      using pinned = openPinnedLink(this.#pinOf(device.index));
      return pinned?.id === link.id ? [] : [`the link of the wire program for ${where} was unpinned`];
    });
  }

  /** Closes links; they stay attached. */
  [Symbol.dispose](): void {
    for (const { link } of this.#attached.values()) link[Symbol.dispose]();
    this.#attached.clear();
  }

  #putOn(program: BpfProgram, device: Device): number {
    const { netns, ipFamily, logger } = this.#options;
    const link = this.#known(device);
    if (link !== undefined) {
      this.#attached.set(device.index, { device, link });
      const pinned = this.#pin(link, device);
      if (link.programId === program.id || isSameProgram(link.programId, program)) return pinned;
      link.update(program);
      return pinned + 1;
    }
    const place = {
      ifindex: device.index,
      priority: filterPriorities[ipFamily],
      ...(netns === undefined ? {} : { netns }),
    };
    const fresh = attachTc(program, place);
    this.#attached.set(device.index, { device, link: fresh });
    this.#pin(fresh, device);
    logger.info('listening for Services on a network device', { ipFamily, device: device.name, by: fresh.mechanism });
    return 1;
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

  #pin(link: BpfLink, device: Device): number {
    if (isFilter(link)) return 0; // it needs none
    const path = this.#pinOf(device.index);
    using pinned = openPinnedLink(path);
    if (pinned?.id === link.id) return 0;
    pin(link, path, { replace: true });
    return 1;
  }

  /** Lets go of devices that are no uplinks, or are gone. */
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

  #pinOf(index: number): string {
    return join(this.#options.pinFolder, `${pinPrefix}${index}`);
  }
}

/** Detaches what is pinned there, whoever else holds it. */
function detachPinned(path: string): void {
  using link = openPinnedLink(path);
  link?.detach();
}

/** Whether it is a filter of clsact rather than a link; such a one cannot be pinned. */
function isFilter(link: BpfLink | TcLink): boolean {
  return 'mechanism' in link && link.mechanism === 'clsact';
}

function isAttached(link: BpfLink | TcLink, { index }: Device): boolean {
  return isFilter(link) ? link.programId !== 0 : linkInfo(link).ifindex === index;
}
