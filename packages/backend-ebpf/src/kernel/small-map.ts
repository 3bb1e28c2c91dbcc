import type { BpfEntries, BpfMap, BpfMapShape } from '@switchyard/native';

export type MapElement = readonly [key: Uint8Array, value: Uint8Array];

/** Makes a small map hold exactly these elements; writes new and changed ones before it deletes. Returns writes. Throws `NativeError`. */
export function writeElements(map: BpfMap, wanted: readonly MapElement[]): number {
  const { missing, extra } = differences(readElements(map), wanted);
  for (const [key, value] of missing) map.update(key, value);
  for (const key of extra) map.delete(key);
  return missing.length + extra.length;
}

/** Whether a small map holds what it shall. Compares elements only if the map's bytes are not those that were right before. */
export class SmallMapWatch {
  #right: BpfEntries | undefined;

  /** Throws `NativeError`. */
  holds(map: BpfMap, wanted: () => readonly MapElement[]): boolean {
    const entries = map.entries();
    if (this.#right !== undefined && isSame(entries, this.#right)) return true;
    const { missing, extra } = differences(elementsOf(entries, map.shape), wanted());
    const isRight = missing.length + extra.length === 0;
    this.#right = isRight ? entries : undefined;
    return isRight;
  }

  /** For other wanted elements. */
  forget(): void {
    this.#right = undefined;
  }
}

function isSame(a: BpfEntries, b: BpfEntries): boolean {
  return Buffer.compare(a.keys, b.keys) === 0 && Buffer.compare(a.values, b.values) === 0;
}

/** Elements of a small map: values by their keys in hexadecimal digits. */
export function readElements(map: BpfMap): Map<string, Uint8Array> {
  return elementsOf(map.entries(), map.shape);
}

function elementsOf({ keys, values, count }: BpfEntries, { keySize, valueSize }: BpfMapShape): Map<string, Uint8Array> {
  const elements = new Map<string, Uint8Array>();
  for (let index = 0; index < count; index++) {
    const key = hexOf(keys.subarray(index * keySize, (index + 1) * keySize));
    elements.set(key, values.slice(index * valueSize, (index + 1) * valueSize));
  }
  return elements;
}

/** Wanted elements that are absent or have another value, and keys of unwanted ones, which remain in `extra`. */
function differences(
  extra: Map<string, Uint8Array>,
  wanted: readonly MapElement[],
): { readonly missing: readonly MapElement[]; readonly extra: readonly Uint8Array[] } {
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
