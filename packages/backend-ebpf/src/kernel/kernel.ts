import type { IpFamily, PodDetector } from '@switchyard/core';
import type { BpfLink, BpfMap, CgroupHook } from '@switchyard/native';
import type { MapName, MapSizes } from '../render/layouts.ts';

/** All maps of one family. */
export type MapSet = Readonly<Record<MapName, BpfMap>>;

/** Result of `openMaps`. */
export interface OpenedMaps {
  readonly maps: MapSet;
  /** The maps are new: no process of this layout version has written, or all was removed. */
  readonly isNew: boolean;
}

/** Descriptions of differences from the last `attach`; empty without any. */
export type KernelFaults = readonly string[];

/** `part`: of `frontends` one slice per call, so that it costs the same for each size of a cluster. */
export type FingerprintExtent = 'whole' | 'part';

/** One family's maps, programs, links and pins, in the kernel or in memory for tests. Rejects with `HostError`. */
export interface EbpfKernel extends AsyncDisposable {
  readonly ipFamily: IpFamily;
  /** Opens the pinned maps, or makes and pins new ones. Larger ones stay; smaller ones grow as by `growMaps`. */
  openMaps(sizes: MapSizes, signal: AbortSignal): Promise<OpenedMaps>;
  /** Opens the pinned maps of this version for reading, until the next call; undefined unless all exist. */
  findMaps(signal: AbortSignal): Promise<MapSet | undefined>;
  /** Replaces maps that are too small, same content and ids. The caller must not use the old set afterwards. */
  growMaps(sizes: MapSizes, signal: AbortSignal): Promise<MapSet>;
  /** Loads this build's programs over the maps and attaches them, or updates the links of another build. Returns writes. */
  attach(signal: AbortSignal): Promise<number>;
  /** Removes maps and links of other layout versions, once nothing forwards by them. Returns writes. */
  removeOtherVersions(signal: AbortSignal): Promise<number>;
  /** Compares links, pins and programs with those of `attach`. */
  findFaults(signal: AbortSignal): Promise<KernelFaults>;
  /**
   * A number that changes when another process changes these links, or links, pins or maps of this family, but for the large arrays.
   * Undefined before `attach`, and where `frontends` is not as the last whole one found it. Throws `HostError`.
   */
  fingerprint(links: readonly BpfLink[], extent: FingerprintExtent): bigint | undefined;
  /** Detaches and unpins everything of all versions in this family. Returns descriptions of what it removed. */
  remove(signal: AbortSignal): Promise<readonly string[]>;
}

/** Programs at a node's uplinks. */
export interface Wire extends AsyncDisposable {
  /** Whether programs forward traffic from outside; decided by the first call that does not reject (`HostError`). */
  isUsed(signal: AbortSignal): Promise<boolean>;
  /** Whether rules must carry all of the table beside programs, for devices that no program can serve. Rejects with `HostError`. */
  needsRules(podDetector: PodDetector): Promise<boolean>;
  /** Attaches this build's programs over the open maps; returns writes. Idempotent. Rejects with `HostError`. */
  ensure(signal: AbortSignal): Promise<number>;
  /** As `WirePath.findFaults`. */
  findFaults(signal: AbortSignal): Promise<readonly string[]>;
  /** As `WirePath.links`. */
  links(): readonly BpfLink[] | undefined;
  follow(signal: AbortSignal): Promise<void>;
  /** Removes programs of all versions. Returns descriptions of what it removed. */
  remove(signal: AbortSignal): Promise<readonly string[]>;
}

/** Hooks of each family; IPv4 also needs those of IPv6 sockets, for addresses like ::ffff:10.96.0.1. */
export const hooksOf: Readonly<Record<IpFamily, readonly CgroupHook[]>> = {
  IPv4: ['connect4', 'sendmsg4', 'recvmsg4', 'getpeername4', 'connect6', 'sendmsg6', 'recvmsg6', 'getpeername6'],
  IPv6: ['connect6', 'sendmsg6', 'recvmsg6', 'getpeername6'],
};
