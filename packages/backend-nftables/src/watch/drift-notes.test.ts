import { MessageWriter, readMessages } from '@switchyard/native';
import { describe, expect, test } from 'vitest';
import { tableNames } from '../render/names.ts';
import { DriftNotes } from './drift-notes.ts';

const stranger = 4711;
const own = 1234;

type Attribute = readonly [type: number, value: string | Uint8Array | number];

/** One notice as the kernel writes it. */
function notice(type: number, attributes: readonly Attribute[]): (writer: MessageWriter, portId: number) => void {
  return (writer, portId) => {
    const start = writer.length;
    writer.beginMessage({ type: 0x0a00 | type, flags: 0, sequence: 0 });
    writer.netfilterHeader(1, 0);
    for (const [number, value] of attributes) {
      if (typeof value === 'string') writer.attributeText(number, value);
      else if (typeof value === 'number') writer.attributeUint32be(number, value);
      else writer.attributeBytes(number, value);
    }
    writer.endMessage();
    new DataView(writer.bytes().buffer).setUint32(start + 12, portId, true);
  };
}

const made = (table: string) => notice(0, [[1, table]]);
const tableGone = (table: string) => notice(2, [[1, table]]);
const chainGone = (chain: string) =>
  notice(5, [
    [1, 'switchyard'],
    [3, chain],
  ]);
const ruleAdded = (table: string, chain: string) =>
  notice(6, [
    [1, table],
    [2, chain],
  ]);
const setAdded = (set: string) =>
  notice(9, [
    [1, 'switchyard'],
    [2, set],
  ]);
const elementAdded = (set: string, table = 'switchyard') =>
  notice(12, [
    [1, table],
    [2, set],
    [3, Uint8Array.of(1)],
  ]);
const elementGone = (set: string) =>
  notice(14, [
    [1, 'switchyard'],
    [2, set],
    [3, Uint8Array.of(2)],
  ]);
const end = (id: number) =>
  notice(15, [
    [1, id],
    [2, 815],
    [3, 'nft'],
  ]);

/** The one byte of the last attribute, before its padding. */
function numberIn(attributes: Uint8Array): number | undefined {
  return attributes.at(-4);
}

function notes(): DriftNotes {
  return new DriftNotes({
    tables: tableNames,
    suffix: '4',
    isOwn: (portId) => portId === own,
    describe: (set, attributes) => (set.startsWith('affinity') ? undefined : `number ${numberIn(attributes)}`),
    isBirthmark: (attributes) => numberIn(attributes) === 1,
  });
}

function feed(to: DriftNotes, from: number, ...messages: readonly ReturnType<typeof notice>[]): void {
  const writer = new MessageWriter();
  for (const message of messages) message(writer, from);
  for (const message of readMessages(writer.bytes())) to.note(writer.bytes(), message);
}

describe('a foreign change', () => {
  test.each<[string, ReturnType<typeof notice>, string, string]>([
    ['a deleted table', tableGone('switchyard'), 'table', 'table switchyard deleted'],
    ['a table put to sleep', made('switchyard-2'), 'table', 'table switchyard-2 made or changed'],
    ['a deleted chain', chainGone('lb6-3'), 'chain', 'chain lb6-3 deleted'],
    ['a new rule', ruleAdded('switchyard', 'services'), 'rule', 'rule added to chain services'],
    ['a new set', setAdded('mine'), 'set', 'set or map mine added'],
    ['a new element', elementAdded('frontends4'), 'element', 'element number 1 added to frontends4'],
    ['a deleted element', elementGone('lb6-classes'), 'element', 'element number 2 deleted from lb6-classes'],
  ])('%s is reported in words, with its process', (_, message, kind, text) => {
    const some = notes();
    feed(some, stranger, message, end(1));
    expect(some.take()).toEqual({ kind, changes: [text], process: { pid: 815, name: 'nft' } });
    expect(some.take()).toBeUndefined();
  });

  test.each<[string, ReturnType<typeof notice>, number]>([
    ['a rule in a table of others', ruleAdded('filter', 'services'), stranger],
    ['an element in a table of others', elementAdded('frontends4', 'kube-proxy'), stranger],
    ['an element of the other family', elementGone('frontends6'), stranger],
    ['an element that packets make', elementGone('affinity4'), stranger],
    ['an unnamed set of a rule', setAdded('__set7'), stranger],
    ['our own write', elementGone('frontends4'), own],
  ])('%s is none of our business', (_, message, from) => {
    const some = notes();
    feed(some, from, message, end(1));
    expect(some.take()).toBeUndefined();
  });

  test('is reported when its transaction is complete, not before', () => {
    const some = notes();
    feed(some, stranger, elementGone('frontends4'));
    expect(some.take()).toBeUndefined();
    feed(some, stranger, end(1));
    expect(some.take()).toMatchObject({ changes: ['element number 2 deleted from frontends4'] });
  });

  test('several transactions between two looks are one report', () => {
    const some = notes();
    feed(some, stranger, elementGone('frontends4'), end(1), chainGone('services'), end(2));
    expect(some.take()).toMatchObject({
      kind: 'chain',
      changes: ['chain services deleted', 'element number 2 deleted from frontends4'],
    });
  });

  test('is reported once though two alternating sockets received it', () => {
    const some = notes();
    feed(some, stranger, elementGone('frontends4'), end(1), chainGone('services'), end(2));
    feed(some, stranger, elementGone('frontends4'), end(1), chainGone('services'), end(2));
    expect(some.take()?.changes).toHaveLength(2);
  });

  test('lost notices are drift of an unknown kind', () => {
    const some = notes();
    feed(some, stranger, elementGone('frontends4'));
    some.noteLoss();
    expect(some.take()).toEqual({
      kind: 'unknown',
      changes: ['too many changes at once: notices were lost'],
      process: undefined,
    });
  });
});

describe('our rules, loaded by a child process', () => {
  const load = [made('switchyard-2'), setAdded('birthmark'), elementAdded('birthmark'), ruleAdded('switchyard', 'x')];

  test('are no drift', () => {
    const some = notes();
    feed(some, stranger, ...load, elementAdded('lb4-classes'), elementAdded('__set4'), end(1));
    expect(some.take()).toBeUndefined();
  });

  test.each<[string, ReturnType<typeof notice>]>([
    ['elements of Services, as when a saved listing is restored', elementAdded('frontends6')],
    ['a deletion', tableGone('switchyard')],
  ])('with %s are', (_, more) => {
    const some = notes();
    feed(some, stranger, ...load, more, end(1));
    expect(some.take()).toMatchObject({ kind: 'table' });
  });

  test('with the birthmark of another build are', () => {
    const some = notes();
    feed(some, stranger, made('switchyard'), elementGone('birthmark'), end(1));
    expect(some.take()).toMatchObject({ kind: 'table' });
  });
});
