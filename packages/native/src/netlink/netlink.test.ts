import { describe, expect, test } from 'vitest';
import { MessageWriter } from './message-writer.ts';
import {
  AttributeCursor,
  readAttributes,
  readMessages,
  readText,
  readUint32be,
  readUint64be,
} from './read-messages.ts';

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const plain = (spaced: string): string => spaced.replaceAll(' ', '');

/** Bytes as a little-endian machine has them: this is what the kernel sees on x64 and arm64. */
describe('MessageWriter', () => {
  test('a message carries its length, type, flags and sequence, then the netfilter header', () => {
    const writer = new MessageWriter();
    writer.beginMessage({ type: 0x0a0c, flags: 0x405, sequence: 7 });
    writer.netfilterHeader(1, 10);
    writer.endMessage();
    expect(hexOf(writer.bytes())).toBe(plain('14000000 0c0a 0504 07000000 00000000 0100000a'));
  });

  test('text ends with NUL; length says the content, padding follows', () => {
    const writer = new MessageWriter();
    writer.attributeText(1, 'abcd');
    expect(hexOf(writer.bytes())).toBe(plain('09000100 6162636400 000000'));
  });

  test('nested attributes carry the flag and the length of everything in them', () => {
    const writer = new MessageWriter();
    const outer = writer.beginNested(3);
    const inner = writer.beginNested(1);
    writer.attributeUint32be(2, 0x01020304);
    writer.endAttribute(inner);
    writer.attributeUint8(4, 0xff);
    writer.endAttribute(outer);
    expect(hexOf(writer.bytes())).toBe(plain('18000380 0c000180 08000200 01020304 05000400 ff000000'));
  });

  test.each<[string, (writer: MessageWriter) => void, string]>([
    ['16 bits in network order', (writer) => writer.uint16be(0x1234), '1234'],
    ['16 bits in host order', (writer) => writer.uint16(0x1234), '3412'],
    ['32 bits in network order', (writer) => writer.uint32be(0xfffffffe), 'fffffffe'],
    ['32 bits in host order', (writer) => writer.uint32(0xfffffffe), 'feffffff'],
    ['64 bits in network order', (writer) => writer.uint64be(0x0102030405060708n), '0102030405060708'],
    ['an attribute of 64 bits', (writer) => writer.attributeUint64be(5, 1n), '0c000500 0000000000000001'],
    ['an attribute of 16 bits, padded', (writer) => writer.attributeUint16be(5, 80), '06000500 00500000'],
    ['an attribute in host order', (writer) => writer.attributeUint32(5, 80), '08000500 50000000'],
    ['an attribute of bytes, padded', (w) => w.attributeBytes(5, Uint8Array.of(1, 2, 3)), '07000500 01020300'],
  ])('%s', (_, write, expected) => {
    const writer = new MessageWriter();
    write(writer);
    expect(hexOf(writer.bytes())).toBe(plain(expected));
  });

  test('grows with everything that was written, also inside an open message', () => {
    const writer = new MessageWriter();
    writer.beginMessage({ type: 1, flags: 2, sequence: 3 });
    for (let index = 0; index < 100_000; index++) writer.uint32be(index);
    writer.endMessage();
    const [message] = readMessages(writer.bytes());
    expect(message).toEqual({ type: 1, flags: 2, sequence: 3, portId: 0, start: 16, end: 400_016 });
    expect(readUint32be(writer.bytes(), 16 + 4 * 99_999)).toBe(99_999);
  });

  test('an attribute of known length needs no end', () => {
    const writer = new MessageWriter();
    writer.attributeHeader(2, 2);
    writer.uint16be(80);
    writer.pad();
    expect(hexOf(writer.bytes())).toBe(plain('06000200 00500000'));
  });

  test('flags can be added to a message that has ended, and to no other', () => {
    const writer = new MessageWriter();
    for (const sequence of [1, 2]) {
      writer.beginMessage({ type: 1, flags: 0x401, sequence });
      writer.endMessage();
    }
    writer.addFlags(16, 4);
    expect([...readMessages(writer.bytes())].map(({ flags }) => flags)).toEqual([0x401, 0x405]);
  });

  test('clear starts over, and what was written before does not shine through', () => {
    const writer = new MessageWriter();
    for (let index = 0; index < 1_000_000; index++) writer.uint32be(0xffffffff);
    writer.clear();
    expect(writer.length).toBe(0);
    writer.attributeUint8(1, 1);
    expect(hexOf(writer.bytes())).toBe(plain('05000100 01000000'));
  });

  test('padding is zero where something longer stood before', () => {
    const writer = new MessageWriter();
    writer.uint64be(0xffffffffffffffffn);
    writer.clear();
    writer.attributeUint8(1, 1);
    expect(hexOf(writer.bytes())).toBe(plain('05000100 01000000'));
  });

  test('an attribute that is too long is refused', () => {
    const writer = new MessageWriter();
    const start = writer.beginAttribute(1);
    writer.raw(new Uint8Array(65_532));
    expect(() => writer.endAttribute(start)).toThrow('has 65536 bytes');
  });

  test.each<[string, (writer: MessageWriter) => void]>([
    ['begins twice', (writer) => writer.beginMessage({ type: 1, flags: 0, sequence: 0 })],
    ['ends twice', (writer) => [writer.endMessage(), writer.endMessage()]],
  ])('a message that %s is our own mistake', (_, act) => {
    const writer = new MessageWriter();
    writer.beginMessage({ type: 1, flags: 0, sequence: 0 });
    expect(() => act(writer)).toThrow('a netlink message');
  });
});

describe('reading', () => {
  const written = (): Uint8Array => {
    const writer = new MessageWriter();
    for (const sequence of [1, 2]) {
      writer.beginMessage({ type: sequence * 10, flags: 0, sequence });
      writer.attributeText(1, 'switchyard');
      const nested = writer.beginNested(2);
      writer.attributeUint64be(3, 0xabcdef0123456789n);
      writer.endAttribute(nested);
      writer.endMessage();
    }
    return writer.bytes();
  };

  test('finds messages and attributes again', () => {
    const bytes = written();
    const found = [...readMessages(bytes)].map(({ type, sequence, start, end }) => {
      const [name, nested] = [...readAttributes(bytes, start, end)];
      const [inner] = [...readAttributes(bytes, nested!.start, nested!.end)];
      const text = readText(bytes, name!.start, name!.end);
      return { type, sequence, text, nested: nested!.type, inner: readUint64be(bytes, inner!.start) };
    });
    const same = { text: 'switchyard', nested: 2, inner: 0xabcdef0123456789n };
    expect(found).toEqual([
      { type: 10, sequence: 1, ...same },
      { type: 20, sequence: 2, ...same },
    ]);
  });

  test('a cursor can be used again', () => {
    const bytes = written();
    const cursor = new AttributeCursor();
    const types = [...readMessages(bytes)].map(({ start, end }) => {
      cursor.enter(bytes, start, end);
      const seen: number[] = [];
      while (cursor.next()) seen.push(cursor.type);
      return seen;
    });
    expect(types).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  test.each<[string, string]>([
    ['shorter than its header', `0f000000${'00'.repeat(12)}`],
    ['longer than the datagram', `14000000${'00'.repeat(12)}`],
    ['cut off in its header', '10000000'],
  ])('a message %s is an error, not a loop', (_, hex) => {
    expect(() => [...readMessages(Buffer.from(plain(hex), 'hex'))]).toThrow('the message at byte 0');
  });

  test.each<[string, string]>([
    ['shorter than its header', '03000100'],
    ['longer than what holds it', '09000100 00000000'],
    ['cut off in its header', '0400'],
  ])('an attribute %s is an error, not a loop', (_, hex) => {
    const bytes = Buffer.from(plain(hex), 'hex');
    expect(() => [...readAttributes(bytes, 0, bytes.length)]).toThrow('the attribute at byte 0');
  });
});
