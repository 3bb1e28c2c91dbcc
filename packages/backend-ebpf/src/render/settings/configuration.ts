import { type Cidr, cidrLength, cidrsOverlap, type Millis } from '@switchyard/core';
import { offsetOf, sizeOf, sourceClassIndex } from '../layouts.ts';
import { firstAddressBytes, maskBytes } from './address-bytes.ts';

/** Bytes of a guard: address and mask. */
const guardSize = 32;

/** Number of service CIDRs that programs compare with. */
const guardSlots = 2;

/** A guard that matches no destination: all bits compared, with the unspecified address. */
const offGuard: Uint8Array = Uint8Array.from({ length: guardSize }, (_, index) => (index < 16 ? 0 : 0xff));

interface GuardPlan {
  /** `guardSlots` guards, one after the other. */
  readonly bytes: Uint8Array;
  /** Number of active guards. */
  readonly count: number;
  /** Cluster IPs may be outside the guards: no service CIDR is known, or there are more than fit. */
  readonly isAnywhere: boolean;
}

/** A place for each CIDR: an active one keeps its, a new one gets one that no program reads, if there is one. */
function placeGuards(active: Uint8Array, cidrs: readonly Cidr[]): GuardPlan {
  const all = withoutCovered(cidrs);
  const wanted = all.slice(0, guardSlots).map((cidr) => Buffer.concat([firstAddressBytes(cidr), maskBytes(cidr)]));
  const slots: (Uint8Array | undefined)[] = Array.from({ length: guardSlots }, () => undefined);
  const isNew = (guard: Uint8Array): boolean => {
    const at = slotOf(active, guard);
    if (at !== undefined) slots[at] = guard;
    return at === undefined;
  };
  for (const guard of wanted.filter(isNew)) slots[freeSlot(slots, active)] = guard;
  return {
    bytes: Buffer.concat(slots.map((guard) => guard ?? offGuard)),
    count: slots.findLastIndex((guard) => guard !== undefined) + 1,
    isAnywhere: all.length === 0 || all.length > guardSlots,
  };
}

function slotOf(active: Uint8Array, guard: Uint8Array): number | undefined {
  for (let slot = 0; (slot + 1) * guardSize <= active.length; slot++) {
    if (Buffer.compare(active.subarray(slot * guardSize, (slot + 1) * guardSize), guard) === 0) return slot;
  }
  return undefined;
}

/** A place that no program reads, otherwise that of an unwanted guard. */
function freeSlot(slots: readonly (Uint8Array | undefined)[], active: Uint8Array): number {
  const isRead = (slot: number): boolean => {
    const guard = active.subarray(slot * guardSize, (slot + 1) * guardSize);
    return guard.length > 0 && Buffer.compare(guard, offGuard) !== 0;
  };
  const unread = slots.findIndex((guard, slot) => guard === undefined && !isRead(slot));
  return unread >= 0 ? unread : slots.indexOf(undefined);
}

/** CIDRs that are not within another, the larger ones first: they matter most if not all fit. */
function withoutCovered(cidrs: readonly Cidr[]): readonly Cidr[] {
  const isCovered = (cidr: Cidr): boolean =>
    cidrs.some((other) => cidrsOverlap(cidr, other) && cidrLength(other) < cidrLength(cidr));
  return [...new Set(cidrs)].filter((cidr) => !isCovered(cidr)).sort((a, b) => cidrLength(a) - cidrLength(b));
}

/** Configuration that does not depend on the table. */
export interface ConfigurationConstants {
  /** Cookie of the host network namespace. */
  readonly hostNetns: bigint;
  /** Time for which an unconnected UDP socket keeps its endpoint; whole seconds. */
  readonly udpSticky: Millis;
}

/** Configuration that depends on the table. */
export interface ConfiguredSettings {
  readonly serviceCidrs: readonly Cidr[];
  /** Whether pods are detected: sockets in other network namespaces count as pods' then. */
  readonly hasPodDetector: boolean;
  /** Whether a Service has a cluster IP outside of all service CIDRs: any unknown destination may be one then. */
  readonly hasClusterIpsElsewhere: boolean;
}

/** The configuration is read and written in words of 8 bytes: programs see each word old or new, never mixed. */
export const wordCount: number = sizeOf('configuration') / 8;
const guardsAt = offsetOf('configuration', 'guard0_address');
const firstGuardWord = guardsAt / 8;
const wordsOfGuard = guardSize / 8;

/** Encodes the wanted words; guards keep their places in the current ones. */
export function encodeConfiguration(
  constants: ConfigurationConstants,
  settings: ConfiguredSettings,
  current: BigUint64Array,
): BigUint64Array {
  const guards = placeGuards(activeGuards(current), settings.serviceCidrs);
  const words = new BigUint64Array(wordCount);
  const bytes = new Uint8Array(words.buffer);
  const view = new DataView(words.buffer);
  const at = (field: Parameters<typeof offsetOf<'configuration'>>[1]): number => offsetOf('configuration', field);
  view.setBigUint64(at('host_netns'), constants.hostNetns, true);
  view.setUint8(at('pod_class'), settings.hasPodDetector ? sourceClassIndex.pod : sourceClassIndex.outside);
  view.setUint8(at('guards'), guards.count);
  view.setUint8(at('guard_all'), guards.isAnywhere || settings.hasClusterIpsElsewhere ? 1 : 0);
  view.setUint32(at('udp_sticky_seconds'), Math.round(constants.udpSticky / 1000), true);
  bytes.set(guards.bytes, guardsAt);
  return words;
}

/** One store of 8 bytes. */
export interface WordWrite {
  readonly word: number;
  readonly value: bigint;
}

/**
 * Plans the stores from one configuration to another, in an order in which a program that reads between two stores sees each setting
 * old or new. Numbers that are read together share a word. A guard has four words: it is written to a place that no program compares,
 * before the count makes it active. If there is no such place, a guard is overwritten: first narrowed to a single address, so that no
 * mixture of two CIDRs guards addresses that neither guards.
 */
export function planWrites(current: BigUint64Array, next: BigUint64Array): readonly WordWrite[] {
  const writes: WordWrite[] = [];
  const seen = current.slice();
  const store = (word: number, value: bigint): void => {
    if (seen[word] === value) return;
    seen[word] = value;
    writes.push({ word, value });
  };
  const storeNext = (first: number, count: number): void => {
    for (let word = first; word < first + count; word++) store(word, next[word] ?? 0n);
  };
  const overwrite = (slot: number): void => {
    const [address, mask] = [guardWord(slot), guardWord(slot) + 2];
    if (isSame(seen, next, address)) return;
    store(mask, allOnes);
    store(mask + 1, allOnes);
    storeNext(address, 2);
    storeNext(mask, 2);
  };
  const slots = Array.from({ length: guardSlots }, (_, slot) => slot);
  const inUse = guardCount(current);
  for (const slot of slots) if (slot >= inUse || !isCompared(current, slot)) overwrite(slot);
  storeWithCount(next, Math.max(inUse, guardCount(next)), store);
  for (const slot of slots) if (isCompared(next, slot)) overwrite(slot);
  for (const slot of slots) overwrite(slot);
  storeNext(0, firstGuardWord);
  return writes;
}

/** All words before the guards, but with another count. */
function storeWithCount(next: BigUint64Array, count: number, store: (word: number, value: bigint) => void): void {
  const words = next.slice(0, firstGuardWord);
  new Uint8Array(words.buffer)[offsetOf('configuration', 'guards')] = count;
  for (const [word, value] of words.entries()) store(word, value);
}

/** Whether an active guard could match a destination. */
function isCompared(words: BigUint64Array, slot: number): boolean {
  const guard = bytesOf(words).subarray(guardsAt + slot * guardSize, guardsAt + (slot + 1) * guardSize);
  return Buffer.compare(guard, offGuard) !== 0;
}

const allOnes = 0xffff_ffff_ffff_ffffn;

function guardWord(slot: number): number {
  return firstGuardWord + slot * wordsOfGuard;
}

function isSame(a: BigUint64Array, b: BigUint64Array, guard: number): boolean {
  return a.subarray(guard, guard + wordsOfGuard).every((value, index) => value === b[guard + index]);
}

/** Bounded, because another process may have written any value. */
function guardCount(words: BigUint64Array): number {
  return Math.min(bytesOf(words)[offsetOf('configuration', 'guards')] ?? 0, guardSlots);
}

function activeGuards(words: BigUint64Array): Uint8Array {
  return bytesOf(words).subarray(guardsAt, guardsAt + guardCount(words) * guardSize);
}

function bytesOf(words: BigUint64Array): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}
