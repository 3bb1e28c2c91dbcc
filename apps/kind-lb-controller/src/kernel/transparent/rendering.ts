import type { IpAddress } from '@switchyard/core';
import type { TransparentPort } from './transparent-port.ts';

/** The text rendered so far, to which each part is added. */
export interface Rendering {
  /** How rules name nodes. */
  readonly numbers: ReadonlyMap<IpAddress, number>;
  readonly chains: { readonly name: string; readonly rules: readonly string[] }[];
  /** Maps with their elements: their declarations by name. */
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

/** As a part of a declaration; nft does not take an empty list. */
export function elementsOf(elements: readonly string[]): string {
  return elements.length === 0 ? '' : `elements = { ${elements.join(', ')} }`;
}
