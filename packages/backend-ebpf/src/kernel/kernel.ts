import type { IpFamily, PodDetector } from '@switchyard/core';
import type { BpfMap, CgroupHook } from '@switchyard/native';
import type { MapName, MapSizes } from '../render/layouts.ts';

/** All maps of one family. */
export type MapSet = Readonly<Record<MapName, BpfMap>>;

/** What `openMaps` found or made. */
export interface OpenedMaps {
  readonly maps: MapSet;
  /** Nothing was there: no process of this layout version has written, or all was removed. */
  readonly isNew: boolean;
}

/** Something that was not as we left it, in words; empty when all is. */
export type KernelFaults = readonly string[];

/**
 * One family's maps, programs, links and pins in the kernel. `linux` carries it out; `testing` has one in memory. Rejects and
 * throws `HostError`.
 */
export interface EbpfKernel extends AsyncDisposable {
  readonly ipFamily: IpFamily;
  /**
   * The pinned maps, or new ones of these sizes, pinned. What is pinned is taken as it is, also where it is larger; where it is
   * smaller it is grown as by `growMaps`.
   */
  openMaps(sizes: MapSizes, signal: AbortSignal): Promise<OpenedMaps>;
  /**
   * The pinned maps of this layout version, to look at until the next call; undefined where not all of them are there. Makes and
   * changes nothing.
   */
  findMaps(signal: AbortSignal): Promise<MapSet | undefined>;
  /**
   * Exchanges all maps that are too small for larger ones with the same content, ids unchanged, without a moment in which a
   * program sees less. The old set is not to be used any more.
   */
  growMaps(sizes: MapSizes, signal: AbortSignal): Promise<MapSet>;
  /** Loads this build's programs over the maps and attaches them, or updates the links of another build. Returns writes. */
  attach(signal: AbortSignal): Promise<number>;
  /** Takes away what other layout versions left, once nothing forwards by it any more. Returns writes. */
  removeOtherVersions(signal: AbortSignal): Promise<number>;
  /** Looks whether links, pins and programs are as `attach` left them. Cheap: done twice a second. */
  findFaults(signal: AbortSignal): Promise<KernelFaults>;
  /** Detaches and unpins everything any version left in this family. In words; nothing for nothing. */
  remove(signal: AbortSignal): Promise<readonly string[]>;
}

/** What is at a node's uplinks. */
export interface Wire extends AsyncDisposable {
  /**
   * Whether programs forward what comes from outside: found out when it is first asked. Rejects with `HostError` where it cannot be
   * found out; then it is asked anew.
   */
  isUsed(signal: AbortSignal): Promise<boolean>;
  /** Whether rules must carry all of the table beside programs, for devices that no program can serve. Rejects with `HostError`. */
  needsRules(podDetector: PodDetector): Promise<boolean>;
  /** Attaches programs over the maps that are open, as they should be; returns writes. Idempotent. Rejects with `HostError`. */
  ensure(signal: AbortSignal): Promise<number>;
  /** As `WirePath.findFaults`. */
  findFaults(signal: AbortSignal): Promise<readonly string[]>;
  /** New uplinks get the program, until aborted. */
  follow(signal: AbortSignal): Promise<void>;
  /** Takes away what programs of the wire of any version left; in words. */
  remove(signal: AbortSignal): Promise<readonly string[]>;
}

/** Which hooks a family needs; IPv4 also those of IPv6 sockets, for addresses like ::ffff:10.96.0.1. */
export const hooksOf: Readonly<Record<IpFamily, readonly CgroupHook[]>> = {
  IPv4: ['connect4', 'sendmsg4', 'recvmsg4', 'getpeername4', 'connect6', 'sendmsg6', 'recvmsg6', 'getpeername6'],
  IPv6: ['connect6', 'sendmsg6', 'recvmsg6', 'getpeername6'],
};
