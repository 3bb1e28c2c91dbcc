import { dropSets, type ElementObject, type FamilySuffix } from './names.ts';

/**
 * One part of a concatenated key or value, and how the kernel stores it. Every part is padded to four bytes.
 *
 * - `address`: of the object's family, network order; text is canonical.
 * - `cidr`: the same, as an interval. A CIDR in text.
 * - `protocol`: one byte; `tcp`, `udp`, `sctp` in text.
 * - `port`: two bytes, network order; decimal.
 * - `number`: four bytes in the machine's order (`numgen`); decimal.
 * - `handle`: four bytes in the machine's order (`meta priority`, `mark`); `0x` and hexadecimal digits.
 */
export type Part = 'address' | 'cidr' | 'protocol' | 'port' | 'number' | 'handle';

export interface Schema {
  readonly key: readonly Part[];
  /** Empty for a set. */
  readonly data: readonly Part[];
}

/** The key of a drop set's elements: a service id. */
export const dropSetSchema: Schema = { key: ['handle'], data: [] };

/** The shape of every map and set that is written element by element. */
export const schemas: Readonly<Record<ElementObject, Schema>> = {
  frontends: { key: ['address', 'protocol', 'port'], data: ['handle'] },
  nodeports: { key: ['protocol', 'port'], data: ['handle'] },
  'to-cluster': { key: ['handle'], data: ['handle'] },
  'to-local': { key: ['handle'], data: ['handle'] },
  endpoints: { key: ['handle', 'number'], data: ['address', 'port'] },
  'aff-endpoints': { key: ['handle'], data: ['address', 'port'] },
  'aff-slots': { key: ['handle', 'number'], data: ['handle'] },
  hairpin: { key: ['address', 'address', 'protocol', 'port'], data: [] },
  'cluster-ips': { key: ['address'], data: [] },
  'fw-allow': { key: ['address', 'protocol', 'port', 'cidr'], data: [] },
};

export interface PartsLayout {
  /** None: there is no such thing, as the data of a set. */
  readonly parts: readonly Part[];
  /** Bytes. */
  readonly length: number;
  /** Whether addresses in it have 16 bytes. */
  readonly isIpv6: boolean;
}

export interface ObjectLayout {
  /** With its suffix: the name in the kernel. */
  readonly name: string;
  readonly key: PartsLayout;
  readonly data: PartsLayout;
  /** The key is an interval: first and last of it are written. */
  readonly isInterval: boolean;
}

/** Layouts by the name of the object, with its suffix. */
export const layouts: ReadonlyMap<string, ObjectLayout> = new Map(
  [...Object.entries(schemas), ...dropSets.map((set) => [set, dropSetSchema] as const)].flatMap(([object, schema]) =>
    (['4', '6'] as const).map((suffix) => [`${object}${suffix}`, layoutOf(object, schema, suffix)] as const),
  ),
);

function layoutOf(object: string, { key, data }: Schema, suffix: FamilySuffix): ObjectLayout {
  return {
    name: `${object}${suffix}`,
    key: partsLayout(key, suffix),
    data: partsLayout(data, suffix),
    isInterval: key.includes('cidr'),
  };
}

function partsLayout(parts: readonly Part[], suffix: FamilySuffix): PartsLayout {
  return { parts, length: lengthOf(parts, suffix), isIpv6: suffix === '6' };
}

function lengthOf(parts: readonly Part[], suffix: FamilySuffix): number {
  const [only] = parts;
  // A value of one part is as long as its type; in a concatenation each part is padded to four bytes.
  if (parts.length === 1 && (only === 'protocol' || only === 'port')) return only === 'port' ? 2 : 1;
  return parts.reduce((sum, part) => sum + (isAddress(part) && suffix === '6' ? 16 : 4), 0);
}

function isAddress(part: Part): boolean {
  return part === 'address' || part === 'cidr';
}
