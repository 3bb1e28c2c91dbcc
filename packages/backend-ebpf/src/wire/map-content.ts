import type { BpfMap } from '@switchyard/native';
import { masqueradeAddresses, type Network } from './devices.ts';

/** Bytes of an address in maps. */
const addressLength = 16;

/** Whether an address of 16 bytes is in one of the prefixes of `pod_cidrs`, as they are now. */
export function podAddresses(podCidrs: BpfMap): (address: Uint8Array) => boolean {
  const { keys, count } = podCidrs.entries();
  const view = new DataView(keys.buffer, keys.byteOffset, keys.byteLength);
  const stride = 4 + addressLength;
  return (address) => {
    for (let index = 0; index < count; index++) {
      const start = index * stride;
      const prefix = keys.subarray(start + 4, start + stride);
      if (hasPrefix(address, prefix, view.getUint32(start, true))) return true;
    }
    return false;
  };
}

function hasPrefix(address: Uint8Array, prefix: Uint8Array, bits: number): boolean {
  for (let at = 0; at < addressLength; at++) {
    const rest = Math.max(0, Math.min(8, bits - at * 8));
    const mask = (0xff << (8 - rest)) & 0xff;
    if ((((address[at] ?? 0) ^ (prefix[at] ?? 0)) & mask) !== 0) return false;
  }
  return true;
}

/** Makes `masq_addresses` hold what the network says. Returns writes. Throws `NativeError`. */
export function writeMasqueradeAddresses(map: BpfMap, network: Network): number {
  const changes = differences(map, network);
  for (const [device, address] of changes) {
    if (address === undefined) map.delete(keyOf(device));
    else map.update(keyOf(device), address);
  }
  return changes.size;
}

/** What of `masq_addresses` is not what the network says, in words. */
export function masqueradeFaults(map: BpfMap, network: Network): readonly string[] {
  return differences(map, network).size === 0 ? [] : ['masquerade addresses are not those of the network devices'];
}

/** By device; undefined for those that must go. */
function differences(map: BpfMap, network: Network): ReadonlyMap<number, Uint8Array | undefined> {
  const changes = new Map<number, Uint8Array | undefined>(masqueradeAddresses(network));
  const { keys, values, count } = map.entries();
  const view = new DataView(keys.buffer, keys.byteOffset, keys.byteLength);
  for (let index = 0; index < count; index++) {
    const device = view.getUint32(index * 4, true);
    const wanted = changes.get(device);
    const found = values.subarray(index * addressLength, (index + 1) * addressLength);
    if (wanted === undefined) changes.set(device, undefined);
    else if (Buffer.compare(wanted, found) === 0) changes.delete(device);
  }
  return changes;
}

function keyOf(device: number): Uint8Array {
  const key = new Uint8Array(4);
  new DataView(key.buffer).setUint32(0, device, true);
  return key;
}
