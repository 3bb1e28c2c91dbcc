import { type Cidr, cidrLength, cidrsOverlap } from '@switchyard/core';
import { firstAddressBytes, maskBytes } from './address-bytes.ts';

/** Bytes of a guard: address and mask. */
export const guardSize = 32;

/** Number of service CIDRs that programs compare with. */
export const guardSlots = 2;

/** A guard that matches no destination: all bits compared, with the unspecified address. */
export const offGuard: Uint8Array = Uint8Array.from({ length: guardSize }, (_, index) => (index < 16 ? 0 : 0xff));

/** Guards for the service CIDRs. */
export interface GuardPlan {
  /** `guardSlots` guards, one after the other. */
  readonly bytes: Uint8Array;
  /** Number of active guards. */
  readonly count: number;
  /** Cluster IPs may be outside the guards: no service CIDR is known, or there are more than fit. */
  readonly isAnywhere: boolean;
}

/**
 * Assigns a place to each service CIDR. An active one keeps its place, and a new one gets a place that no program reads, if there is
 * one: then every program sees the old or the new guard. `active`: the guards in use.
 */
export function placeGuards(active: Uint8Array, cidrs: readonly Cidr[]): GuardPlan {
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
