import type { Cidr, ForwardingTable } from '@switchyard/core';
import type { BpfMap } from '@switchyard/native';
import { offsetOf, sizeOf } from '../../render/layouts.ts';
import { firstAddressBytes, prefixBits } from '../../render/settings/address-bytes.ts';
import { readEntries } from './read-entries.ts';

/** Every key means: a pod. */
const present = Uint8Array.of(1);

/**
 * The CIDRs whose addresses are pods'. Where pods are detected by interface there is none: their devices have no program unless
 * an operator names them, and packets by those count as from outside.
 */
export function podCidrsOf({ podDetector }: Pick<ForwardingTable, 'podDetector'>): readonly Cidr[] {
  return podDetector.kind === 'cidr' ? [podDetector.cidr] : [];
}

/** Makes the map hold these CIDRs, new ones first; returns writes. */
export function writePodCidrs(map: BpfMap, cidrs: readonly Cidr[]): number {
  const wanted = new Map(cidrs.map((cidr) => [hexOf(cidr), podCidrKey(cidr)]));
  const there = readEntries(map);
  let writes = 0;
  for (const [hex, key] of wanted) {
    if (there.has(hex)) continue;
    map.update(key, present);
    writes++;
  }
  for (const hex of there.keys()) if (!wanted.has(hex) && map.delete(Buffer.from(hex, 'hex'))) writes++;
  return writes;
}

/** Whether the map holds exactly these. */
export function hasPodCidrs(map: BpfMap, cidrs: readonly Cidr[]): boolean {
  const there = readEntries(map);
  return there.size === cidrs.length && cidrs.every((cidr) => there.has(hexOf(cidr)));
}

function podCidrKey(cidr: Cidr): Uint8Array {
  const key = new Uint8Array(sizeOf('pod_cidr_key'));
  new DataView(key.buffer).setUint32(offsetOf('pod_cidr_key', 'prefix_length'), prefixBits(cidr), true);
  key.set(firstAddressBytes(cidr), offsetOf('pod_cidr_key', 'address'));
  return key;
}

function hexOf(cidr: Cidr): string {
  return Buffer.from(podCidrKey(cidr)).toString('hex');
}
