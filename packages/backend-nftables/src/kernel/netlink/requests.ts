import { NLM_F } from '@switchyard/native';
import { NFT_MSG, NFTA } from './constants.ts';
import type { BatchEncoder, Sent } from './encode-batch.ts';

/** Asks whether there is a table. */
export function requestTable(encoder: BatchEncoder, table: string): Sent {
  return encoder.request({ type: NFT_MSG.GETTABLE, flags: NLM_F.REQUEST }, (writer) =>
    writer.attributeText(NFTA.TABLE.NAME, table),
  );
}

/** Asks for every map and set of a table. */
export function requestSets(encoder: BatchEncoder, table: string): Sent {
  return encoder.request({ type: NFT_MSG.GETSET, flags: NLM_F.REQUEST | NLM_F.DUMP }, (writer) =>
    writer.attributeText(NFTA.SET.TABLE, table),
  );
}

/** Asks for every element of a map or set. */
export function requestElements(encoder: BatchEncoder, table: string, name: string): Sent {
  return encoder.request({ type: NFT_MSG.GETSETELEM, flags: NLM_F.REQUEST | NLM_F.DUMP }, (writer) => {
    writer.attributeText(NFTA.ELEM_LIST.TABLE, table);
    writer.attributeText(NFTA.ELEM_LIST.SET, name);
  });
}
