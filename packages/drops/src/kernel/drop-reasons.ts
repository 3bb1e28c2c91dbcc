import { HostError } from '@switchyard/core';

/** Numbers of linux/btf.h. */
const btf = { magic: 0xeb9f, kindEnum: 6, typeLength: 12, enumerator: 8 } as const;

/** Bytes behind a type's header, by its kind: of the kind itself, and of each of its `vlen` members. */
const lengths: Readonly<Record<number, readonly [own: number, member: number]>> = {
  1: [4, 0], // INT
  2: [0, 0], // PTR
  3: [12, 0], // ARRAY
  4: [0, 12], // STRUCT
  5: [0, 12], // UNION
  6: [0, 8], // ENUM
  7: [0, 0], // FWD
  8: [0, 0], // TYPEDEF
  9: [0, 0], // VOLATILE
  10: [0, 0], // CONST
  11: [0, 0], // RESTRICT
  12: [0, 0], // FUNC
  13: [0, 8], // FUNC_PROTO
  14: [4, 0], // VAR
  15: [0, 12], // DATASEC
  16: [0, 0], // FLOAT
  17: [4, 0], // DECL_TAG
  18: [0, 0], // TYPE_TAG
  19: [0, 12], // ENUM64
};

/** Prefixes of the names. */
const prefix = /^SKB_(?:DROP_REASON_)?/;

/**
 * Names of `enum skb_drop_reason` by number, from the kernel's own types (`/sys/kernel/btf/vmlinux`), because numbers differ between
 * kernels. Throws `HostError` if the types have no such enum (before Linux 5.17).
 */
export function readDropReasons(types: Uint8Array): ReadonlyMap<number, string> {
  try {
    return readEnum(types);
  } catch (error) {
    throw error instanceof RangeError ? unreadable('it ends too early') : error;
  }
}

function readEnum(types: Uint8Array): ReadonlyMap<number, string> {
  const view = new DataView(types.buffer, types.byteOffset, types.byteLength);
  if (types.byteLength < 24 || view.getUint16(0, true) !== btf.magic) throw unreadable('it is no BTF');
  const header = view.getUint32(4, true);
  const start = header + view.getUint32(8, true);
  const end = start + view.getUint32(12, true);
  const strings = header + view.getUint32(16, true);
  const nameAt = (offset: number): string => {
    const from = strings + offset;
    return new TextDecoder().decode(types.subarray(from, types.indexOf(0, from)));
  };
  const wanted = stringOffsetOf(types, strings, 'skb_drop_reason') - strings;
  for (let at = start; at < end;) {
    const info = view.getUint32(at + 4, true);
    const [kind, members] = [(info >>> 24) & 31, info & 0xffff];
    const length = lengths[kind];
    if (length === undefined) throw unreadable(`its type kind ${kind} is not known`);
    if (kind === btf.kindEnum && view.getUint32(at, true) === wanted) {
      return new Map(
        Array.from({ length: members }, (_, index) => {
          const one = at + btf.typeLength + index * btf.enumerator;
          return [view.getUint32(one + 4, true), nameAt(view.getUint32(one, true)).replace(prefix, '')] as const;
        }),
      );
    }
    at += btf.typeLength + length[0] + members * length[1];
  }
  throw unreadable('it has no enum skb_drop_reason: the kernel is older than Linux 5.17');
}

function stringOffsetOf(types: Uint8Array, strings: number, text: string): number {
  return Buffer.from(types.buffer, types.byteOffset, types.byteLength).indexOf(`\0${text}\0`, strings) + 1;
}

function unreadable(why: string): HostError {
  return new HostError('drops.reasons', `cannot read the drop reasons from the kernel's types (BTF): ${why}`);
}
