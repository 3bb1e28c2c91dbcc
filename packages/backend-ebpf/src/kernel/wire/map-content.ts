import type { BpfMap } from '@switchyard/native';
import { masqueradeAddresses, type Network } from './devices.ts';

/** Bytes of an address in maps. */
const addressLength = 16;

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
