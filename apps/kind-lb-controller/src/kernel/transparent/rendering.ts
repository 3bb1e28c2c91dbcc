import { createHash } from 'node:crypto';
import type { IpAddress } from '@switchyard/core';
import type { TransparentPort } from './transparent-port.ts';

/** The text rendered so far, to which each part is added. */
export interface Rendering {
  /** How rules name nodes. */
  readonly numbers: ReadonlyMap<IpAddress, number>;
  readonly chains: { readonly name: string; readonly rules: readonly string[] }[];
  /** Maps with their elements: their declarations by name. See `fillMap`. */
  readonly filled: Map<string, string>;
  /** Maps that rules fill. */
  readonly learnt: Map<string, string>;
}

/** Ends the names of all that belongs to a port, such as `fd00_172_18__200-80-tcp`. */
export function nameOf({ address, port, protocol }: TransparentPort): string {
  return `${address.replaceAll(':', '_')}-${port}-${protocol.toLowerCase()}`;
}

/** A node's number as nft spells priorities. */
export function classId({ numbers }: Rendering, node: IpAddress): string {
  const number = numbers.get(node) ?? 0; // every node of a port is in `present`
  return `${(number >>> 16).toString(16)}:${(number & 0xffff).toString(16)}`;
}

/**
 * Adds a map with elements and returns its name, which begins with `name` and follows from them. So a map never changes, and rules from
 * before a change find what they look for until the last packet has left them. An unnamed map would be emptied with its rule.
 */
export function fillMap(
  to: Rendering,
  { name, type, elements }: { readonly name: string; readonly type: string; readonly elements: readonly string[] },
): string {
  const list = elements.join(', ');
  const full = `${name}-${createHash('sha256').update(`${type} ${list}`).digest('hex').slice(0, 12)}`;
  // nft does not take an empty list.
  to.filled.set(full, `typeof ${type}; ${list === '' ? '' : `elements = { ${list} }`}`);
  return full;
}
