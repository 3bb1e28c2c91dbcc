import { byteOrder, type PartExpression, type PartLayout } from './part-types.ts';

/** Parts of a set's user data, from which `nft list` prints the declaration. The kernel does not read them. */
export interface SetNotes {
  readonly key: readonly PartLayout[];
  /** Undefined for a set. */
  readonly data: readonly PartLayout[] | undefined;
  /** Whether the key's expression is noted: a map within a rule has none. */
  readonly hasKeyExpression: boolean;
  readonly comment: string | undefined;
}

/** Numbers of libnftnl's udata.h: `NFTNL_UDATA_SET_...`. */
const note = {
  keyOrder: 0,
  dataOrder: 1,
  mergeElements: 2,
  keyType: 3,
  dataType: 4,
  dataInterval: 6,
  comment: 7,
} as const;
/** `NFTNL_UDATA_SET_TYPEOF_...`. */
const typeOf = { expression: 0, data: 1 } as const;
/** Numbers of expressions in nft 1.0.6, which later releases keep. */
const expressionNumber = { verdict: 1, payload: 7, meta: 9, concat: 13, random: 23 } as const;

/** The user data of a set, as nft 1.0.6 writes it: type, length, value, without padding. Later releases read the same. */
export function setNotes({ key, data, hasKeyExpression, comment }: SetNotes): Uint8Array {
  return bytesOf([
    ...entry(note.keyOrder, number(orderOf(key))),
    ...(data === undefined ? [] : entry(note.dataOrder, number(orderOf(data)))),
    ...(hasKeyExpression ? typeNote(note.keyType, key) : []),
    ...(data === undefined ? [] : typeNote(note.dataType, data)),
    ...(data === undefined ? [] : entry(note.dataInterval, number(0))),
    ...(comment === undefined ? [] : commentNote(note.comment, comment)),
  ]);
}

export function tableNotes(comment: string): Uint8Array {
  return bytesOf(commentNote(0, comment));
}

type Bytes = readonly number[];

function bytesOf(bytes: Bytes): Uint8Array {
  return Uint8Array.from(bytes);
}

function entry(type: number, value: Bytes): Bytes {
  return [type, value.length, ...value];
}

/** In the machine's order, little-endian as in all of native. */
function number(value: number): Bytes {
  return [value & 0xff, (value >>> 8) & 0xff, (value >>> 16) & 0xff, value >>> 24];
}

function commentNote(type: number, text: string): Bytes {
  return entry(type, [...Buffer.from(text, 'latin1'), 0]);
}

function orderOf(parts: readonly PartLayout[]): number {
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only.order : byteOrder.none;
}

/** A single part that was declared by its type has no note. */
function typeNote(type: number, parts: readonly PartLayout[]): Bytes {
  const [only] = parts;
  if (parts.length === 1) return only?.expression === undefined ? [] : entry(type, expressionNote(only.expression));
  const inner = parts.flatMap(({ expression }, index) =>
    expression === undefined ? [] : entry(index, expressionNote(expression)),
  );
  return entry(type, typed(expressionNumber.concat, inner));
}

function expressionNote(expression: PartExpression): Bytes {
  switch (expression.kind) {
    case 'meta':
      return typed(expressionNumber.meta, entry(0, number(expression.key)));
    case 'payload':
      return typed(expressionNumber.payload, [
        ...entry(0, number(expression.protocol)),
        ...entry(1, number(expression.field)),
      ]);
    case 'random':
      return typed(expressionNumber.random, [
        ...entry(0, number(1)), // NFT_NG_RANDOM
        ...entry(1, number(expression.modulus)),
        ...entry(2, number(0)), // offset
      ]);
    case 'verdict':
      return typed(expressionNumber.verdict, []);
  }
}

function typed(kind: number, data: Bytes): Bytes {
  return [...entry(typeOf.expression, number(kind)), ...entry(typeOf.data, data)];
}
