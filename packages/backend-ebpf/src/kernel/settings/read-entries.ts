import type { BpfMap } from '@switchyard/native';

/** All elements of a small map: values by their keys in hexadecimal digits. */
export function readEntries(map: BpfMap): Map<string, Uint8Array> {
  const { keys, values, count } = map.entries();
  const { keySize, valueSize } = map.shape;
  const entries = new Map<string, Uint8Array>();
  for (let index = 0; index < count; index++) {
    const key = Buffer.from(keys.buffer, keys.byteOffset + index * keySize, keySize).toString('hex');
    entries.set(key, values.slice(index * valueSize, (index + 1) * valueSize));
  }
  return entries;
}
