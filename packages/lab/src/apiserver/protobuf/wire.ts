/** One field as it stands in a protobuf message. */
export interface WireField {
  readonly number: number;
  /** A varint for wire type 0, the bytes for wire type 2. Other wire types are skipped. */
  readonly value: bigint | Uint8Array;
}

/** Reads the fields of one message; throws `RangeError` when it is cut off or malformed. */
export function readFields(bytes: Uint8Array): readonly WireField[] {
  const fields: WireField[] = [];
  let offset = 0;
  const varint = (): bigint => {
    let result = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[offset++];
      if (byte === undefined) break;
      result |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return result;
    }
    throw new RangeError(`malformed protobuf: no end of a number at byte ${offset}`);
  };
  while (offset < bytes.length) {
    const tag = Number(varint());
    const number = tag >> 3;
    const type = tag & 7;
    if (type === 0) fields.push({ number, value: varint() });
    else if (type === 2) {
      const length = Number(varint());
      if (offset + length > bytes.length) throw new RangeError(`malformed protobuf: field ${number} is cut off`);
      fields.push({ number, value: bytes.subarray(offset, offset + length) });
      offset += length;
    } else if (type === 1 || type === 5) offset += type === 1 ? 8 : 4;
    else throw new RangeError(`malformed protobuf: wire type ${type} at byte ${offset}`);
  }
  return fields;
}
