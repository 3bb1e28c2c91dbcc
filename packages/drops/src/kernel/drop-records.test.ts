import { parseIp, ipToBytes } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { type DropRecord, readDropRecord, recordSizes } from './drop-records.ts';

const direction = { request: 1, answer: 2, guessedRequest: 3, guessedAnswer: 4 } as const;
const reasons = new Map([[6, 'NETFILTER_DROP']]);

/** Fields of `struct sy_drop_key`, in its order. */
interface KeyFields {
  readonly source?: string;
  readonly destination?: string;
  readonly client?: string;
  readonly frontend?: string;
  readonly endpoint?: string;
  readonly frontendPort?: number;
  readonly endpointPort?: number;
  readonly flowStatus?: number;
  readonly netns?: number;
  readonly reason?: number;
  readonly serverPort?: number;
  readonly protocol?: number;
  readonly tcpFlags?: number;
  readonly direction?: number;
  readonly hops?: number;
}

function keyOf(fields: KeyFields): Uint8Array {
  return Uint8Array.from([
    ...address(fields.source ?? '10.244.9.9'),
    ...address(fields.destination ?? '10.96.0.10'),
    ...address(fields.client),
    ...address(fields.frontend),
    ...address(fields.endpoint),
    ...bigEndian(fields.frontendPort ?? 0, 2),
    ...bigEndian(fields.endpointPort ?? 0, 2),
    ...littleEndian(fields.flowStatus ?? 0, 4),
    ...littleEndian(fields.netns ?? 4026531840, 8),
    ...littleEndian(fields.reason ?? 6, 4),
    ...bigEndian(fields.serverPort ?? 80, 2),
    fields.protocol ?? 6,
    fields.tcpFlags ?? 0,
    fields.direction ?? direction.guessedRequest,
    fields.hops ?? 64,
    ...bigEndian(0, 6), // unused
  ]);
}

/** Fields of `struct sy_drop_value`, in its order. */
interface ValueFields {
  readonly count?: number;
  readonly last?: number;
  readonly stack?: readonly bigint[];
  readonly length?: number;
  readonly sourcePort?: number;
  readonly destinationPort?: number;
}

function valueOf(fields: ValueFields = {}): Uint8Array {
  return Uint8Array.from([
    ...littleEndian(fields.count ?? 1, 8),
    ...littleEndian(fields.last ?? 0, 8),
    ...Array.from({ length: 10 }, (_, index) => littleEndian(fields.stack?.[index] ?? 0, 8)).flat(),
    ...littleEndian(fields.length ?? 60, 4),
    ...bigEndian(fields.sourcePort ?? 40_000, 2),
    ...bigEndian(fields.destinationPort ?? 80, 2),
  ]);
}

/** 16 bytes, IPv4 as ::ffff:a.b.c.d; all zero for no address. */
function address(text?: string): readonly number[] {
  if (text === undefined) return Array.from({ length: 16 }, () => 0);
  const bytes = [...ipToBytes(parseIp(text))];
  return bytes.length === 16 ? bytes : [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, ...bytes];
}

function littleEndian(number: number | bigint, length: number): readonly number[] {
  return Array.from({ length }, (_, index) => Number((BigInt(number) >> BigInt(8 * index)) & 255n));
}

function bigEndian(number: number, length: number): readonly number[] {
  return littleEndian(number, length).toReversed();
}

function read(key: KeyFields, value: ValueFields = {}): DropRecord | undefined {
  return readDropRecord(keyOf(key), valueOf(value), reasons);
}

test('a record has the sizes of the structures in drops.h', () => {
  expect(recordSizes).toEqual({ key: keyOf({}).length, value: valueOf().length });
});

test('a record has every field of an IPv4 packet without a flow', () => {
  const record = read(
    { source: '10.244.9.9', destination: '10.96.0.10', netns: 4026532500, tcpFlags: 2, hops: 255 },
    {
      count: 3_000_000_000_000,
      last: 12_345_678_900,
      length: 1500,
      sourcePort: 40_001,
      destinationPort: 258,
      stack: [0xffffffff81000010n, 0n, 0xffffffff81000020n],
    },
  );
  expect(record).toEqual({
    protocol: 'TCP',
    source: '10.244.9.9',
    destination: '10.96.0.10',
    sourcePort: 40_001,
    destinationPort: 258,
    direction: 'request',
    isDirectionGuessed: true,
    tcpFlags: 2,
    hops: 255,
    flow: undefined,
    netns: 4026532500,
    reason: 'NETFILTER_DROP',
    length: 1500,
    count: 3_000_000_000_000,
    last: 12_345.678,
    stack: [0xffffffff81000010n, 0xffffffff81000020n],
  });
});

test('a stack keeps all ten addresses', () => {
  const stack = Array.from({ length: 10 }, (_, index) => 0xffffffff81000000n + BigInt(index));
  expect(read({}, { stack })?.stack).toEqual(stack);
});

test('a record has addresses of IPv6', () => {
  expect(read({ source: 'fd00:10:244::9', destination: 'fd00:10:96::a' })).toMatchObject({
    source: 'fd00:10:244::9',
    destination: 'fd00:10:96::a',
  });
});

test('an IPv6 address that begins with ten zero bytes stays one', () => {
  expect(read({ source: '::1', destination: '::a:b' })).toMatchObject({ source: '::1', destination: '::a:b' });
});

describe('a flow', () => {
  const flow = { frontendPort: 443, endpointPort: 8443, flowStatus: 0x188 };

  test.each([
    ['IPv4', { client: '10.244.9.9', frontend: '10.96.0.10', endpoint: '10.244.1.5' }],
    ['IPv6', { client: 'fd00:10:244::9', frontend: 'fd00:10:96::a', endpoint: 'fd00:10:244:1::5' }],
  ])('of %s has its addresses and ports', (_, { client, frontend, endpoint }) => {
    const record = read({ ...flow, client, frontend, endpoint, direction: direction.request });
    expect(record?.flow).toEqual({
      client,
      address: frontend,
      port: 443,
      endpoint,
      endpointPort: 8443,
      isConfirmed: true,
      isAnswered: false,
    });
  });

  test.each([
    ['none', 0, false, false],
    ['IPS_CONFIRMED', 8, true, false],
    ['IPS_SEEN_REPLY', 2, false, true],
    ['all but IPS_CONFIRMED', 0xfffffff7, false, true],
  ])('with the status bits %s', (_, flowStatus, isConfirmed, isAnswered) => {
    const record = read({ ...flow, flowStatus, direction: direction.request });
    expect(record?.flow).toMatchObject({ isConfirmed, isAnswered });
  });
});

test.each([
  ['request', direction.request, 'request', false, true],
  ['answer', direction.answer, 'answer', false, true],
  ['guessed request', direction.guessedRequest, 'request', true, false],
  ['guessed answer', direction.guessedAnswer, 'answer', true, false],
] as const)('the direction of a %s', (_, number, expected, isDirectionGuessed, hasFlow) => {
  const record = read({ direction: number });
  expect(record).toMatchObject({ direction: expected, isDirectionGuessed });
  expect(record?.flow !== undefined).toBe(hasFlow);
});

test.each([
  [6, 'TCP'],
  [17, 'UDP'],
  [132, 'SCTP'],
])('protocol %i is %s', (protocol, expected) => {
  expect(read({ protocol })?.protocol).toBe(expected);
});

test.each([0, 1, 58, 255])('protocol %i makes no record', (protocol) => {
  expect(read({ protocol })).toBeUndefined();
});

test('a reason without a name is shown as its number', () => {
  expect(read({ reason: 0x10001 })?.reason).toBe('reason 65537');
});

test('a record is read from the middle of a larger buffer', () => {
  const within = (bytes: Uint8Array): Uint8Array => Uint8Array.from([1, 2, 3, ...bytes, 4]).subarray(3, -1);
  const key = keyOf({ source: '10.244.9.8', tcpFlags: 18 });
  expect(readDropRecord(within(key), within(valueOf({ count: 7 })), reasons)).toMatchObject({
    source: '10.244.9.8',
    tcpFlags: 18,
    count: 7,
  });
});
