import { describe, expect, test } from 'vitest';
import { type CallNode, encodePprof } from './pprof.ts';
import { fromCpuProfile, fromHeapProfile } from './v8-profiles.ts';

/** A field of a protobuf message: its number, and a number or bytes. */
type Field = readonly [field: number, value: number | Buffer];

/** Reads a message as any protobuf reader does that has no schema. */
function decode(bytes: Uint8Array): readonly Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++] ?? 0;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return Number(value);
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    if (tag % 8 === 0) fields.push([tag >> 3, varint()]);
    else {
      const length = varint();
      fields.push([tag >> 3, Buffer.from(bytes.subarray(at, at + length))]);
      at += length;
    }
  }
  return fields;
}

/** `profile.proto` as far as we write it, with texts instead of their numbers. */
function readPprof(bytes: Uint8Array) {
  const fields = decode(bytes);
  const all = (field: number): Buffer[] =>
    fields.flatMap(([number, value]) => (number === field ? [value as Buffer] : []));
  const one = (message: Uint8Array, field: number): number =>
    (decode(message).find(([number]) => number === field)?.[1] ?? 0) as number;
  const list = (message: Uint8Array, field: number): number[] => {
    const packed = decode(message).find(([number]) => number === field)?.[1] as Buffer;
    return decode(wrap(packed)).map(([, value]) => value as number);
  };
  const texts = all(6).map((text) => text.toString('utf8'));
  const text = (message: Uint8Array, field: number): string => texts[one(message, field)] ?? '?';
  const functions = new Map(
    all(5).map((message) => [one(message, 1), `${text(message, 2)} ${text(message, 4)}:${one(message, 5)}`]),
  );
  const locations = new Map(
    all(4).map((message) => {
      const line = decode(message).find(([number]) => number === 4)?.[1] as Buffer;
      return [one(message, 1), functions.get(one(line, 1))];
    }),
  );
  const number = (field: number): number => (fields.find(([one]) => one === field)?.[1] ?? 0) as number;
  return {
    firstText: texts[0],
    sampleTypes: all(1).map((message) => [text(message, 1), text(message, 2)]),
    samples: all(2).map((message) => ({
      stack: list(message, 1).map((id) => locations.get(id)),
      values: list(message, 2),
    })),
    timeNanos: number(9),
    durationNanos: number(10),
    period: number(12),
  };
}

/** Packed varints as fields of number 1, which `decode` understands. */
function wrap(packed: Buffer): Buffer {
  const bytes: number[] = [];
  let isStart = true;
  for (const byte of packed) {
    if (isStart) bytes.push(8);
    bytes.push(byte);
    isStart = byte < 128;
  }
  return Buffer.from(bytes);
}

const leaf = (functionName: string, self: readonly number[]): CallNode => ({
  functionName,
  file: 'main.mjs',
  line: 7,
  self,
  children: [],
});

describe('encodePprof', () => {
  test('a sample for each function that has values, its callers after it', () => {
    const inner = { ...leaf('inner', [3, 300]), children: [leaf('äußere', [1, 70_000_000_000])] };
    const outer = { ...leaf('outer', [0, 0]), children: [inner] };
    const read = readPprof(
      encodePprof({
        sampleTypes: [
          ['samples', 'count'],
          ['cpu', 'nanoseconds'],
        ],
        period: { of: ['cpu', 'nanoseconds'], value: 1_250_000 },
        time: 1_795_278_012_233,
        duration: 30_000,
        root: { ...leaf('(root)', []), children: [outer] },
      }),
    );
    expect(read).toEqual({
      firstText: '',
      sampleTypes: [
        ['samples', 'count'],
        ['cpu', 'nanoseconds'],
      ],
      samples: [
        { stack: ['inner main.mjs:7', 'outer main.mjs:7'], values: [3, 300] },
        { stack: ['äußere main.mjs:7', 'inner main.mjs:7', 'outer main.mjs:7'], values: [1, 70_000_000_000] },
      ],
      timeNanos: 1_795_278_012_233_000_000,
      durationNanos: 30_000_000_000,
      period: 1_250_000,
    });
  });
});

const frame = (functionName: string) => ({
  functionName,
  scriptId: '1',
  url: functionName.startsWith('(') ? '' : 'main.mjs',
  lineNumber: 6,
  columnNumber: 0,
});

test('fromCpuProfile: time goes to the function that was running; idleness is no work', () => {
  const profile = fromCpuProfile(
    {
      nodes: [
        { id: 1, callFrame: frame('(root)'), children: [2, 3] },
        { id: 2, callFrame: frame('(idle)') },
        { id: 3, callFrame: frame('run'), children: [4] },
        { id: 4, callFrame: frame('') },
      ],
      startTime: 1_000_000,
      endTime: 1_010_000,
      samples: [2, 3, 4, 4],
      timeDeltas: [5000, 1000, 2000, 2000],
    },
    1000,
  );
  expect(profile).toMatchObject({ time: 1000, duration: 10, period: { value: 2_500_000 } });
  expect(profile.root.children).toEqual([
    {
      functionName: 'run',
      file: 'main.mjs',
      line: 7,
      self: [1, 1_000_000],
      children: [{ functionName: '(anonymous)', file: 'main.mjs', line: 7, self: [2, 4_000_000], children: [] }],
    },
  ]);
});

test('fromHeapProfile: bytes of each function that allocates', () => {
  const child = { callFrame: frame('keep'), selfSize: 4096, children: [] };
  const profile = fromHeapProfile(
    { head: { callFrame: frame('(root)'), selfSize: 0, children: [child] } },
    { interval: 16_384, time: 1000, duration: 10 },
  );
  expect(profile.sampleTypes).toEqual([['inuse_space', 'bytes']]);
  expect(profile.root.children).toMatchObject([{ functionName: 'keep', self: [4096] }]);
});
