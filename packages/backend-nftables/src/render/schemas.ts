import type { ElementObject } from './names.ts';

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

/** Parts of the key and the data of one object's elements. */
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
