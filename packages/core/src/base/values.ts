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

/** Orders texts by their UTF-16 code units, the same on every machine; for `sort`. */
export function compareTexts(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

/** Gives equal values one shared copy. */
export interface Interner {
  /** The first string equal to `text` that was passed in. */
  intern(text: string): string;
  /**
   * The first list that was passed in with an equal `text`, which must say everything about the list, its
   * type included. Ports repeat from Service to Service.
   */
  internList<T>(list: readonly T[], text: string): readonly T[];
}

/** Names that come and go for months (nodes of an autoscaled pool) must not add up to a leak. */
const maxValues = 20_000;

/**
 * An interner for what repeats all over a cluster: node names, zones, port names, lists of ports. Every JSON document
 * brings its own copies; at 100,000 endpoints they would weigh more than the records. It forgets everything when it has
 * grown too large: later values get new copies, which is only larger, never wrong.
 */
export function newInterner(): Interner {
  const strings = new Map<string, string>();
  const lists = new Map<string, readonly unknown[]>();
  return {
    intern: (text) => firstOf(strings, text, text),
    // The caller's promise about `text`.
    internList: <T>(list: readonly T[], text: string) => firstOf(lists, text, list) as readonly T[],
  };
}

function firstOf<T>(known: Map<string, T>, text: string, value: T): T {
  const first = known.get(text);
  if (first !== undefined) return first;
  if (known.size >= maxValues) known.clear();
  known.set(text, value);
  return value;
}
