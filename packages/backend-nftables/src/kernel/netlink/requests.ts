import { NLM_F, readAttributes, readText, readUint32be } from '@switchyard/native';
import type { ListedObject } from '../transport.ts';
import type { NetlinkRequest } from '@switchyard/native';
import { NFT_MSG, NFT_SET, NFTA } from '@switchyard/netfilter';
import type { BatchEncoder } from './encode-batch.ts';

/** Encodes a request for a table. */
export function requestTable(encoder: BatchEncoder, table: string): NetlinkRequest {
  return encoder.request({ type: NFT_MSG.GETTABLE, flags: NLM_F.REQUEST }, (writer) =>
    writer.attributeText(NFTA.TABLE.NAME, table),
  );
}

/** Encodes a request for all maps and sets of a table. */
export function requestSets(encoder: BatchEncoder, table: string): NetlinkRequest {
  return encoder.request({ type: NFT_MSG.GETSET, flags: NLM_F.REQUEST | NLM_F.DUMP }, (writer) =>
    writer.attributeText(NFTA.SET.TABLE, table),
  );
}

/** Encodes a request for all elements of a map or set. */
export function requestElements(encoder: BatchEncoder, table: string, name: string): NetlinkRequest {
  return encoder.request({ type: NFT_MSG.GETSETELEM, flags: NLM_F.REQUEST | NLM_F.DUMP }, (writer) => {
    writer.attributeText(NFTA.ELEM_LIST.TABLE, table);
    writer.attributeText(NFTA.ELEM_LIST.SET, name);
  });
}

/** A map or set in a listing, which does not say whether it has elements. */
export type ReadSet = Omit<ListedObject, 'isEmpty'>;

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
