import { type Millis, millis } from '@switchyard/core';
import { readAttributes, readUint64be } from '@switchyard/native';
import { NFTA } from '@switchyard/netfilter';
import { type FamilySuffix, heartbeatSet, heartbeatTimeout } from '../../render/names.ts';
import type { BatchTarget } from './encode-batch.ts';
import { addElements, clearElements, writeElement, writeKey } from './write-objects.ts';

/** Writes the messages that replace the element of a heartbeat set. */
export function encodeHeartbeat(target: BatchTarget, suffix: FamilySuffix, now: Millis): void {
  const name = `${heartbeatSet}${suffix}`;
  clearElements(target, name);
  addElements(target, name, (writer) =>
    writeElement(writer, () => {
      writeKey(writer, nanoseconds(now));
      writer.attributeUint64be(NFTA.ELEM.TIMEOUT, BigInt(heartbeatTimeout));
    }),
  );
}

/** Returns the age of each element of a message. `start` is behind its netfilter header. */
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
