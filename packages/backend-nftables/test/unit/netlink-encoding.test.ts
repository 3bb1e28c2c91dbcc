import { readFileSync } from 'node:fs';
import { readAttributes, readMessages, readUint32, NLM_F } from '@switchyard/native';
import { describe, expect, test } from 'vitest';
import type { Change } from '../../src/render/elements.ts';
import { BatchEncoder } from '../../src/kernel/netlink/encode-batch.ts';

interface Recorded {
  readonly nft: string;
  readonly sent: string;
}

const file = new URL('../fixtures/nft-1.0.6-batches.json', import.meta.url);
const recorded = JSON.parse(readFileSync(file, 'utf8')) as readonly Recorded[];

/** The same as our changes: each line of a script is one of them, or several of one kind. */
function changesOf(script: string): readonly Change[] {
  const changes: Change[] = [];
  let flushed: string | undefined;
  for (const line of script.split('\n')) {
    const [, verb = '', object = '', list = ''] = /^(\w+) \w+ inet switchyard (\S+)(?: \{ (.*) \})?$/.exec(line) ?? [];
    const elements = list.split(', ').filter((element) => element !== '');
    if (verb === 'flush') {
      flushed = object;
      changes.push({ kind: 'replace', object: object as 'pod-cidrs4', content: [] });
    } else if (object === flushed) {
      // In another order than the kernel's, so that the encoder must sort.
      changes.splice(-1, 1, { kind: 'replace', object: object as 'pod-cidrs4', content: elements.reverse() });
    } else {
      for (const element of elements) changes.push(elementChange(verb === 'add' ? 'add' : 'delete', object, element));
    }
  }
  return changes;
}

function elementChange(kind: 'add' | 'delete', object: string, element: string): Change {
  const [key = '', data = ''] = element.split(' : ');
  return kind === 'add' ? { kind, id: `${object} ${key}`, data } : { kind, id: `${object} ${key}` };
}

/** Drops differences without a meaning: numbers of messages and of list members, the order of attributes, ids of sets. */
function essence(bytes: Uint8Array): unknown {
  return [...readMessages(bytes)].map(({ type, flags, start, end }) => ({
    type,
    flags: flags & ~NLM_F.ACK,
    header: Buffer.from(bytes.subarray(start, start + 4)).toString('hex'),
    list: attributes(bytes, { from: start + 4, to: end, depth: 0 }),
  }));
}

interface Span {
  readonly from: number;
  readonly to: number;
  readonly depth: number;
}

const setId = 4;
const nestedBit = 0x80;

function attributes(bytes: Uint8Array, { from, to, depth }: Span): unknown {
  const isList = depth === 1;
  return [...readAttributes(bytes, from, to)]
    .filter(({ type }) => depth > 0 || type !== setId)
    .map(({ type, start, end }) => {
      const isNested = (bytes[start - 1]! & nestedBit) !== 0;
      const hex = Buffer.from(bytes.subarray(start, end)).toString('hex');
      return [isList ? 1 : type, isNested ? attributes(bytes, { from: start, to: end, depth: depth + 1 }) : hex];
    })
    .sort((left, right) => (isList ? 0 : Number(left[0]) - Number(right[0])));
}

describe('what nft sends and what we send is the same', () => {
  test.each(recorded.map(({ nft, sent }) => [nft, sent] as const))('%s', (script, sent) => {
    const { bytes } = new BatchEncoder().changes({ table: 'switchyard', changes: changesOf(script) });
    expect(essence(bytes)).toEqual(essence(Buffer.from(sent, 'hex')));
  });
});

const clusterIp = (number: number): Change => ({
  kind: 'add',
  id: `cluster-ips4 10.${number >> 16}.${(number >> 8) & 255}.${number & 255}`,
  data: '',
});

describe('a batch', () => {
  test('requests an answer to its last message only', () => {
    const encoder = new BatchEncoder();
    const changes: readonly Change[] = [clusterIp(1), { kind: 'delete', id: 'cluster-ips4 10.0.0.2' }, clusterIp(3)];
    const { bytes, messages } = encoder.changes({ table: 'switchyard', changes });
    const flags = [...readMessages(bytes)].map((message) => message.flags & NLM_F.ACK);
    expect(flags).toEqual([0, 0, 0, NLM_F.ACK, 0]);
    expect(messages.map(({ firstChange }) => firstChange)).toEqual([0, 1, 2]);
  });

  test('of neighbours of a kind is one message, and sequence numbers never come twice', () => {
    const encoder = new BatchEncoder();
    const sequences = [1, 2].flatMap(() => {
      const { bytes } = encoder.changes({ table: 'switchyard', changes: [clusterIp(1), clusterIp(2), clusterIp(3)] });
      return [...readMessages(bytes)].map(({ sequence }) => sequence);
    });
    expect(sequences).toHaveLength(6);
    expect(new Set(sequences).size).toBe(6);
  });

  test('objects whose names begin alike do not share a message', () => {
    const changes: readonly Change[] = [
      { kind: 'add', id: 'fw-allow4 10.0.0.1 . tcp . 80 . 10.0.0.0/8', data: '' },
      { kind: 'add', id: 'frontends4 10.0.0.1 . tcp . 80', data: '0x1' },
      { kind: 'add', id: 'fw-allow4 10.0.0.1 . tcp . 80 . 11.0.0.0/8', data: '' },
      { kind: 'add', id: 'fw-allow6 ::1 . tcp . 80 . fd00::/8', data: '' },
    ];
    const { messages } = new BatchEncoder().changes({ table: 'switchyard', changes });
    expect(messages.map(({ object }) => object)).toEqual(['fw-allow4', 'frontends4', 'fw-allow4', 'fw-allow6']);
  });

  test('is split into messages before a list gets too long, and every element is in one of them', () => {
    const changes = Array.from({ length: 20_000 }, (_, index) => clusterIp(index));
    const { bytes, messages } = new BatchEncoder().changes({ table: 'switchyard', changes });
    const counts = [...readMessages(bytes)].slice(1, -1).map(({ start, end }) => {
      const list = [...readAttributes(bytes, start + 4, end)].at(-1)!;
      expect(end - start).toBeLessThan(65_536);
      return [...readAttributes(bytes, list.start, list.end)].length;
    });
    expect(counts.length).toBe(Math.ceil((20_000 * 16) / 60_000));
    expect(counts.reduce((sum, count) => sum + count)).toBe(20_000);
    expect(messages.map(({ firstChange }) => firstChange)).toEqual([0, 3750, 7500, 11_250, 15_000, 18_750]);
  });

  test('a large interval set is split as well', () => {
    const content = Array.from({ length: 4000 }, (_, index) => `10.${index >> 8}.${index & 255}.0/25`);
    const changes: readonly Change[] = [{ kind: 'replace', object: 'pod-cidrs4', content }];
    const { bytes, messages } = new BatchEncoder().changes({ table: 'switchyard', changes });
    expect(messages.length).toBeGreaterThan(2);
    const elements = [...readMessages(bytes)].slice(2, -1).flatMap(({ start, end }) => {
      const list = [...readAttributes(bytes, start + 4, end)].at(-1)!;
      return [...readAttributes(bytes, list.start, list.end)];
    });
    expect(elements).toHaveLength(4000 * 2 + 1);
  });

  test('of nothing has no message that could fail', () => {
    expect(new BatchEncoder().changes({ table: 'switchyard', changes: [] }).messages).toEqual([]);
  });

  test('an encoder that stopped in the middle begins anew', () => {
    const encoder = new BatchEncoder();
    const bad: readonly Change[] = [clusterIp(1), { kind: 'add', id: 'cluster-ips4 10.0.0', data: '' }];
    expect(() => encoder.changes({ table: 'switchyard', changes: bad })).toThrow('cannot write');
    const { bytes } = encoder.changes({ table: 'switchyard', changes: [clusterIp(1)] });
    expect(readUint32(bytes, 0)).toBe(20);
    expect([...readMessages(bytes)]).toHaveLength(3);
  });
});

describe('text that is not canonical is our own mistake', () => {
  test.each([
    ['cluster-ips4 10.0.0', ''],
    ['cluster-ips4 10.0.0.256', ''],
    ['cluster-ips4 10.0.0.1 ', ''],
    ['cluster-ips4 10.0.0.1.2', ''],
    ['cluster-ips6 1:2:3:4:5:6:7', ''],
    ['cluster-ips6 1:2:3:4:5:6:7:8:9', ''],
    ['cluster-ips6 1::2::3', ''],
    ['cluster-ips6 1:2:3:4:5:6:7:8::', ''],
    ['cluster-ips6 12345::', ''],
    ['cluster-ips6 ::ffff:10.0.0.1', ''],
    ['cluster-ips6 FD00::1', ''],
    ['frontends4 10.0.0.1 . tcp . 65536', '0x1'],
    ['frontends4 10.0.0.1 . dccp . 80', '0x1'],
    ['frontends4 10.0.0.1 . tcp', '0x1'],
    ['frontends4 10.0.0.1 . tcp . 80', '0x100000000'],
    ['frontends4 10.0.0.1 . tcp . 80', '1'],
    ['frontends4 10.0.0.1 . tcp . 80', ''],
    ['fw-allow4 10.0.0.1 . tcp . 80 . 10.0.0.0/33', ''],
    ['unknown4 10.0.0.1', ''],
  ])('%j : %j', (id, data) => {
    const change: Change = { kind: 'add', id, data };
    expect(() => new BatchEncoder().changes({ table: 'switchyard', changes: [change] })).toThrow(
      expect.objectContaining({ name: 'InvariantError' }),
    );
  });
});
