/**
 * Whether two plain values (records, arrays, primitives; no cycles, no Map or Set) have equal
 * contents. Equal references are answered at once, so shared parts cost nothing.
 */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a)) return Array.isArray(b) && areArraysEqual(a, b);
  if (Array.isArray(b)) return false;
  const left = a as Readonly<Record<string, unknown>>; // any object may be read by key
  const right = b as Readonly<Record<string, unknown>>;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  for (const key of keys) if (!isEqual(left[key], right[key]) || !(key in right)) return false;
  return true;
}

function areArraysEqual(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) if (!isEqual(a[index], b[index])) return false;
  return true;
}
