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
  const wanted = masqueradeAddresses(network);
  const { keys, values, count } = map.entries();
  const view = new DataView(keys.buffer, keys.byteOffset, keys.byteLength);
  let writes = 0;
  const there = new Set<number>();
  for (let index = 0; index < count; index++) {
    const device = view.getUint32(index * 4, true);
    const address = wanted.get(device);
    if (address === undefined) {
      map.delete(keyOf(device));
      writes++;
    } else if (Buffer.compare(address, values.subarray(index * addressLength, (index + 1) * addressLength)) === 0) {
      there.add(device);
    }
  }
  for (const [device, address] of wanted) {
    if (there.has(device)) continue;
    map.update(keyOf(device), address);
    writes++;
  }
  return writes;
}

function keyOf(device: number): Uint8Array {
  const key = new Uint8Array(4);
  new DataView(key.buffer).setUint32(0, device, true);
  return key;
}
