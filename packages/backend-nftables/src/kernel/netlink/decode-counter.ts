import { readAttributes, readText, readUint64be } from '@switchyard/native';
import { NFTA } from './constants.ts';
import type { RawElement } from './decode-elements.ts';

/** Packets that an element counted; undefined when it does not count. Our maps and sets have one expression at most. */
export function packetsOf(bytes: Uint8Array, { expression, expressionEnd }: Readonly<RawElement>): number | undefined {
  let isCounter = false;
  for (const { type, start, end } of readAttributes(bytes, expression, expressionEnd)) {
    if (type === NFTA.EXPR.NAME) isCounter = readText(bytes, start, end) === 'counter';
    if (type !== NFTA.EXPR.DATA || !isCounter) continue;
    for (const value of readAttributes(bytes, start, end)) {
      if (value.type === NFTA.COUNTER.PACKETS) return Number(readUint64be(bytes, value.start));
    }
  }
  return undefined;
}
