import { readAttributes, readText, readUint32be } from '@switchyard/native';
import { NFT_SET, NFTA } from './constants.ts';

/** A map or set as a listing names it. */
export interface ReadSet {
  readonly kind: 'map' | 'set';
  readonly name: string;
}

/** Reads one set of a listing; undefined for one that belongs to a rule and has no name of its own. */
export function readSet(bytes: Uint8Array, start: number, end: number): ReadSet | undefined {
  let name = '';
  let flags = 0;
  for (const attribute of readAttributes(bytes, start, end)) {
    if (attribute.type === NFTA.SET.NAME) name = readText(bytes, attribute.start, attribute.end);
    if (attribute.type === NFTA.SET.FLAGS) flags = readUint32be(bytes, attribute.start);
  }
  if ((flags & NFT_SET.ANONYMOUS) !== 0) return undefined;
  return { kind: (flags & NFT_SET.MAP) === 0 ? 'set' : 'map', name };
}
