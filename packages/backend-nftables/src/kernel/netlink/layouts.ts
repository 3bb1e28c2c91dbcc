import { type FamilySuffix, dropSets } from '../../render/names.ts';
import { type Part, type Schema, dropSetSchema, schemas } from '../../render/schemas.ts';

/** The parts of a key or of data. */
export interface PartsLayout {
  /** None: there is no such thing, as the data of a set. */
  readonly parts: readonly Part[];
  /** Bytes. */
  readonly length: number;
  /** Whether addresses in it have 16 bytes. */
  readonly isIpv6: boolean;
}

/** How the elements of one map or set lie in a message. */
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
