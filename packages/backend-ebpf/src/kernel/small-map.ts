import type { BpfMap } from '@switchyard/native';

export type MapElement = readonly [key: Uint8Array, value: Uint8Array];

/** Makes a small map hold exactly these elements; writes new and changed ones before it deletes. Returns writes. Throws `NativeError`. */
export function writeElements(map: BpfMap, wanted: readonly MapElement[]): number {
  const { missing, extra } = differences(map, wanted);
  for (const [key, value] of missing) map.update(key, value);
  for (const key of extra) map.delete(key);
  return missing.length + extra.length;
}

/** Whether a small map holds what it shall. Compares elements only if the map's bytes are not those that were right before. */
export class SmallMapWatch {
  #right: readonly [keys: Uint8Array, values: Uint8Array] | undefined;

  /** Throws `NativeError`. */
  holds(map: BpfMap, wanted: () => readonly MapElement[]): boolean {
    const { keys, values } = map.entries();
    const [rightKeys, rightValues] = this.#right ?? [];
    if (rightKeys !== undefined && rightValues !== undefined) {
      if (Buffer.compare(keys, rightKeys) === 0 && Buffer.compare(values, rightValues) === 0) return true;
    }
    const { missing, extra } = differences(map, wanted());
    const isRight = missing.length + extra.length === 0;
    this.#right = isRight ? [keys.slice(), values.slice()] : undefined;
    return isRight;
  }

  /** For other wanted elements. */
  forget(): void {
    this.#right = undefined;
  }
}

/** Elements of a small map: values by their keys in hexadecimal digits. */
export function readElements(map: BpfMap): Map<string, Uint8Array> {
  const { keys, values, count } = map.entries();
  const { keySize, valueSize } = map.shape;
  const elements = new Map<string, Uint8Array>();
  for (let index = 0; index < count; index++) {
    const key = hexOf(keys.subarray(index * keySize, (index + 1) * keySize));
    elements.set(key, values.slice(index * valueSize, (index + 1) * valueSize));
  }
  return elements;
}

/** Wanted elements that are absent or have another value, and keys of unwanted ones. */
function differences(
  map: BpfMap,
  wanted: readonly MapElement[],
): { readonly missing: readonly MapElement[]; readonly extra: readonly Uint8Array[] } {
  const extra = readElements(map);
  const missing = wanted.filter(([key, value]) => {
    const found = extra.get(hexOf(key));
    extra.delete(hexOf(key));
    return found === undefined || Buffer.compare(found, value) !== 0;
  });
  return { missing, extra: Array.from(extra.keys(), (hex) => Buffer.from(hex, 'hex')) };
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}
