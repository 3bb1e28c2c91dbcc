import { HostError } from '@switchyard/core';
import { expect, test } from 'vitest';
import { readDropReasons } from './drop-reasons.ts';

/** Kinds of linux/btf.h, with the numbers of 32 bits behind their header: of the kind, and of each member. */
const kinds = [
  ['INT', 1, 1, 0],
  ['PTR', 2, 0, 0],
  ['ARRAY', 3, 3, 0],
  ['STRUCT', 4, 0, 3],
  ['UNION', 5, 0, 3],
  ['ENUM', 6, 0, 2],
  ['FWD', 7, 0, 0],
  ['TYPEDEF', 8, 0, 0],
  ['VOLATILE', 9, 0, 0],
  ['CONST', 10, 0, 0],
  ['RESTRICT', 11, 0, 0],
  ['FUNC', 12, 0, 0],
  ['FUNC_PROTO', 13, 0, 2],
  ['VAR', 14, 1, 0],
  ['DATASEC', 15, 0, 3],
  ['FLOAT', 16, 0, 0],
  ['DECL_TAG', 17, 1, 0],
  ['TYPE_TAG', 18, 0, 0],
  ['ENUM64', 19, 0, 3],
] as const;

/** One type: its kind, its name, its members, and what follows its header. */
interface TypeSpec {
  readonly kind: number;
  readonly name?: string;
  readonly members?: number;
  readonly tail?: readonly (number | string)[];
  /** The bit `kind_flag`. */
  readonly isFlagged?: boolean;
}

const dropReasons: TypeSpec = {
  kind: 6,
  name: 'skb_drop_reason',
  members: 4,
  tail: ['SKB_NOT_DROPPED_YET', 0, 'SKB_DROP_REASON_NOT_SPECIFIED', 2, 'SKB_DROP_REASON_NO_SOCKET', 3, 'OTHER', 70_000],
};
const expected = new Map([
  [0, 'NOT_DROPPED_YET'],
  [2, 'NOT_SPECIFIED'],
  [3, 'NO_SOCKET'],
  [70_000, 'OTHER'],
]);

/** A BTF blob with these types. Names in it become offsets of its strings. `gap`: bytes between the types and the strings. */
function blobOf(types: readonly TypeSpec[], { magic = 0xeb9f, gap = 0 } = {}): Uint8Array {
  const strings = ['', 'a_skb_drop_reason'];
  const offsetOf = (name: string): number => {
    const index = strings.indexOf(name);
    if (index < 0) strings.push(name);
    return strings.slice(0, index < 0 ? -1 : index).reduce((sum, text) => sum + text.length + 1, 0);
  };
  const words = types.flatMap(({ kind, name = '', members = 0, tail = [], isFlagged = false }) => [
    offsetOf(name),
    ((isFlagged ? 0x80000000 : 0) | (kind << 24) | members) >>> 0,
    4,
    ...tail.map((word) => (typeof word === 'string' ? offsetOf(word) : word)),
  ]);
  const text = Buffer.from(strings.map((one) => `${one}\0`).join(''));
  const header = Uint32Array.of(0x10000 | magic, 24, 0, 4 * words.length, 4 * words.length + gap, text.length);
  return Buffer.concat([bytesOf(header), bytesOf(Uint32Array.from(words)), Buffer.alloc(gap), text]);
}

function bytesOf(words: Uint32Array): Uint8Array {
  return new Uint8Array(words.buffer);
}

/** Two members of a kind; what is read out of step has an unknown kind. */
function twoOf(kind: number, own: number, member: number): TypeSpec {
  return { kind, members: 2, tail: Array.from({ length: own + 2 * member }, () => 0xffffffff) };
}

test.each(kinds)('the reasons are found behind a type of kind %s', (_, kind, own, member) => {
  expect(readDropReasons(blobOf([twoOf(kind, own, member), dropReasons]))).toEqual(expected);
});

test('the reasons are found between other types, before an unknown kind', () => {
  const types = [
    { kind: 4, name: 'skb_drop_reason', members: 1, tail: [0, 0, 0], isFlagged: true },
    { kind: 6, name: 'a_skb_drop_reason', members: 1, tail: ['SKB_DROP_REASON_WRONG', 5] },
    ...kinds.map(([, kind, own, member]) => twoOf(kind, own, member)),
    dropReasons,
    { kind: 31 },
  ];
  expect(readDropReasons(blobOf(types))).toEqual(expected);
});

test('the reasons are read where the strings do not follow the types at once', () => {
  expect(readDropReasons(blobOf([dropReasons], { gap: 12 }))).toEqual(expected);
});

test('the reasons are read from the middle of a larger buffer', () => {
  const blob = Buffer.concat([Buffer.from('xxxxx'), blobOf([dropReasons]), Buffer.from('x')]).subarray(5, -1);
  expect(readDropReasons(blob)).toEqual(expected);
});

test.each([
  ['an empty file', new Uint8Array(0), 'it is no BTF'],
  ['another magic number', blobOf([dropReasons], { magic: 0x9feb }), 'it is no BTF'],
  ['no type', blobOf([]), 'it has no enum skb_drop_reason'],
  ['only another enum', blobOf([{ ...dropReasons, name: 'other' }]), 'it has no enum skb_drop_reason'],
  ['only a typedef of this name', blobOf([{ kind: 8, name: 'skb_drop_reason' }]), 'it has no enum skb_drop_reason'],
  ['an unknown kind before the enum', blobOf([{ kind: 20 }, dropReasons]), 'its type kind 20 is not known'],
  ['the kind 0', blobOf([{ kind: 0 }, dropReasons]), 'its type kind 0 is not known'],
])('%s is refused', (_, blob, why) => {
  expect(() => readDropReasons(blob)).toThrow(HostError);
  expect(() => readDropReasons(blob)).toThrow(why);
});
