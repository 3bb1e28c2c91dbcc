import { type Millis, millis } from '@switchyard/core';
import { NLM_F, readAttributes, readUint64be } from '@switchyard/native';
import { type FamilySuffix, heartbeatSet, heartbeatTimeout } from '../../render/names.ts';
import { NFT_MSG, NFTA } from './constants.ts';
import type { BatchTarget } from './encode-batch.ts';

/** Writes the messages that replace the element of a heartbeat set. */
export function encodeHeartbeat({ writer, table, begin }: BatchTarget, suffix: FamilySuffix, now: Millis): void {
  const name = `${heartbeatSet}${suffix}`;
  const head = (): void => {
    writer.attributeText(NFTA.ELEM_LIST.TABLE, table);
    writer.attributeText(NFTA.ELEM_LIST.SET, name);
  };
  begin(NFT_MSG.DELSETELEM, 0, name); // without elements: all of them
  head();
  writer.endMessage();
  begin(NFT_MSG.NEWSETELEM, NLM_F.CREATE, name);
  head();
  const list = writer.beginNested(NFTA.ELEM_LIST.ELEMENTS);
  const element = writer.beginNested(NFTA.LIST.ELEM);
  const key = writer.beginNested(NFTA.ELEM.KEY);
  writer.attributeBytes(NFTA.DATA.VALUE, nanoseconds(now));
  writer.endAttribute(key);
  writer.attributeUint64be(NFTA.ELEM.TIMEOUT, BigInt(heartbeatTimeout));
  writer.endAttribute(element);
  writer.endAttribute(list);
  writer.endMessage();
}

/** How long ago each element of a message was written. `start` is behind its netfilter header. */
export function heartbeatAges(bytes: Uint8Array, start: number, end: number): readonly Millis[] {
  const ages: Millis[] = [];
  for (const outer of readAttributes(bytes, start, end)) {
    if (outer.type !== NFTA.ELEM_LIST.ELEMENTS) continue;
    for (const item of readAttributes(bytes, outer.start, outer.end)) {
      let timeout: bigint | undefined;
      let expires: bigint | undefined;
      for (const part of readAttributes(bytes, item.start, item.end)) {
        if (part.type === NFTA.ELEM.TIMEOUT) timeout = readUint64be(bytes, part.start);
        else if (part.type === NFTA.ELEM.EXPIRATION) expires = readUint64be(bytes, part.start);
      }
      if (timeout !== undefined && expires !== undefined) ages.push(millis(Math.max(0, Number(timeout - expires))));
    }
  }
  return ages;
}

/** As `meta time` has it: since the epoch, in the byte order of the machine, which is little-endian as in all of native. */
function nanoseconds(now: Millis): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(Math.floor(now / 1000)) * 1_000_000_000n, true);
  return bytes;
}
