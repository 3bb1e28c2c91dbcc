import type { IpFamily } from '@switchyard/core';
import { MessageWriter, readMessages } from '@switchyard/native';
import { NFT_MSG } from '@switchyard/netfilter';
import { describe, expect, test } from 'vitest';
import { OwnProcesses } from './own-processes.ts';
import { RuleNotes } from './rule-notes.ts';

const stranger = 4711;
const own = 1234;
const svc = 'KUBE-SVC-ABCDEFGHIJKLMN23';

/** Writes one notice as the kernel does. */
type Notice = (writer: MessageWriter, portId: number) => void;

function notice(type: number, family: number, attributes: (writer: MessageWriter) => void): Notice {
  return (writer, portId) => {
    const start = writer.length;
    writer.beginMessage({ type, flags: 0, sequence: 0 });
    writer.netfilterHeader(family, 0);
    attributes(writer);
    writer.endMessage();
    new DataView(writer.bytes().buffer).setUint32(start + 12, portId, true);
  };
}

interface Place {
  readonly table?: string;
  readonly family?: number;
}

const chain =
  (type: number) =>
  (name: string, { table = 'nat', family = 2 }: Place = {}): Notice =>
    notice(type, family, (writer) => {
      writer.attributeText(1, table);
      writer.attributeText(3, name);
    });

/** A rule that counts, and jumps to a chain if there is one. */
const rule =
  (type: number) =>
  (name: string, target?: string, { table = 'nat', family = 2 }: Place = {}): Notice =>
    notice(type, family, (writer) => {
      writer.attributeText(1, table);
      writer.attributeText(2, name);
      nested(writer, 4, () => {
        nested(writer, 1, () => writer.attributeText(1, 'counter'));
        if (target === undefined) return;
        nested(writer, 1, () => {
          writer.attributeText(1, 'immediate');
          nested(writer, 2, () => {
            writer.attributeUint32be(1, 0);
            nested(writer, 2, () =>
              nested(writer, 2, () => {
                writer.attributeUint32be(1, 0xfffffffd);
                writer.attributeText(2, target);
              }),
            );
          });
        });
      });
    });

function nested(writer: MessageWriter, type: number, content: () => void): void {
  const start = writer.beginNested(type);
  content();
  writer.endAttribute(start);
}

const tableMade = chain(NFT_MSG.NEWTABLE);
const tableGone = (table: string, family = 2): Notice =>
  notice(NFT_MSG.DELTABLE, family, (writer) => writer.attributeText(1, table));
const chainMade = chain(NFT_MSG.NEWCHAIN);
const chainGone = chain(NFT_MSG.DELCHAIN);
const ruleMade = rule(NFT_MSG.NEWRULE);
const ruleGone = rule(NFT_MSG.DELRULE);

const end = (id: number, pid: number = stranger): Notice =>
  notice(NFT_MSG.NEWGEN, 0, (writer) => {
    writer.attributeUint32be(1, id);
    writer.attributeUint32be(2, pid);
    writer.attributeText(3, 'iptables');
  });

/** Notes for a family, and the foreign changes that they noted. */
class Bench {
  readonly foreign: string[] = [];
  readonly notes: RuleNotes;

  constructor(ipFamily: IpFamily = 'IPv4') {
    const processes = new OwnProcesses();
    void processes
      .runner({ run: (_, __, { onStart }) => new Promise(() => onStart?.(own)) })
      .run('', [], { timeout: 0 as never, signal: new AbortController().signal });
    this.notes = new RuleNotes({
      ipFamily,
      own: processes,
      foreign: {
        noteChain: ({ table, name }) => void this.foreign.push(`${table} ${name}`),
        noteTable: (table) => void this.foreign.push(`all of ${table}`),
        noteAll: () => void this.foreign.push('all'),
      },
    });
  }

  feed(from: number, ...messages: readonly Notice[]): void {
    const writer = new MessageWriter();
    for (const message of messages) message(writer, from);
    for (const message of readMessages(writer.bytes())) this.notes.note(writer.bytes(), message);
  }
}

describe('a foreign change', () => {
  test.each<[string, Notice, string, string, string]>([
    ['a rule added to an own chain', ruleMade(svc), 'rule', `rule added to chain ${svc} (table ip nat)`, `nat ${svc}`],
    ['an own rule deleted', ruleGone(svc), 'rule', `rule of chain ${svc} deleted (table ip nat)`, `nat ${svc}`],
    ['a chain deleted', chainGone(svc), 'chain', `chain ${svc} deleted (table ip nat)`, `nat ${svc}`],
    [
      'a shared chain of the filter table made',
      chainMade('KUBE-FORWARD', { table: 'filter' }),
      'chain',
      'chain KUBE-FORWARD added or changed (table ip filter)',
      'filter KUBE-FORWARD',
    ],
    [
      'our mark deleted',
      ruleGone('SWITCHYARD', undefined, { table: 'mangle' }),
      'rule',
      'rule of chain SWITCHYARD deleted (table ip mangle)',
      'mangle SWITCHYARD',
    ],
    [
      'a jump to us deleted',
      ruleGone('PREROUTING', 'KUBE-SERVICES'),
      'rule',
      'rule of chain PREROUTING deleted (table ip nat)',
      'nat PREROUTING',
    ],
    [
      'a jump to us added',
      ruleMade('FORWARD', 'KUBE-FORWARD', { table: 'filter' }),
      'rule',
      'rule added to chain FORWARD (table ip filter)',
      'filter FORWARD',
    ],
    [
      'a rule of the firewall that we share with the kubelet deleted',
      ruleGone('KUBE-FIREWALL', undefined, { table: 'filter' }),
      'rule',
      'rule of chain KUBE-FIREWALL deleted (table ip filter)',
      'filter KUBE-FIREWALL',
    ],
    ['a table deleted', tableGone('filter'), 'table', 'table ip filter deleted', 'all of filter'],
  ])('%s is reported in words, with its process, and notes the chain', (_, message, kind, text, noted) => {
    const bench = new Bench();
    bench.feed(stranger, message, end(1));
    expect(bench.foreign).toEqual([noted]);
    expect(bench.notes.take()).toEqual({ kind, changes: [text], process: { pid: stranger, name: 'iptables' } });
    expect(bench.notes.take()).toBeUndefined();
  });

  test.each<[string, Notice]>([
    ['a rule of others in a chain of the kernel', ruleMade('FORWARD', 'DOCKER-USER', { table: 'filter' })],
    ['a rule without a target in a chain of the kernel', ruleGone('INPUT', undefined, { table: 'filter' })],
    ['a chain of others', chainMade('CNI-HOSTPORT-DNAT')],
    ["the kubelet's rule in its firewall", ruleMade('KUBE-FIREWALL', undefined, { table: 'filter' })],
    ["the kubelet's canary", chainMade('KUBE-KUBELET-CANARY', { table: 'mangle' })],
    ['a chain of the kernel', chainMade('PREROUTING')],
    ['another table', ruleMade(svc, undefined, { table: 'raw' })],
    ['a table that is made', tableMade('', {})],
    ['the other family', ruleMade(svc, undefined, { family: 10 })],
    ['the family inet', chainGone('services', { family: 1, table: 'switchyard' })],
  ])('%s is none of our business', (_, message) => {
    const bench = new Bench();
    bench.feed(stranger, message, end(1));
    expect(bench.foreign).toEqual([]);
    expect(bench.notes.take()).toBeUndefined();
  });

  test("of the other family is that family's", () => {
    const bench = new Bench('IPv6');
    bench.feed(stranger, ruleMade(svc, undefined, { family: 10 }), ruleMade(svc), end(1));
    expect(bench.notes.take()?.changes).toEqual([`rule added to chain ${svc} (table ip6 nat)`]);
  });

  test('is reported when its transaction is complete, not before', () => {
    const bench = new Bench();
    bench.feed(stranger, ruleGone(svc));
    expect([bench.notes.take(), bench.foreign]).toEqual([undefined, []]);
    bench.feed(stranger, end(1));
    expect(bench.notes.take()).toBeDefined();
  });

  test('names each chain once, however many rules of it are touched', () => {
    const bench = new Bench();
    bench.feed(stranger, ruleGone(svc), ruleGone(svc), ruleMade(svc), ruleGone('KUBE-SERVICES'), end(1));
    expect(bench.foreign).toEqual([`nat ${svc}`, 'nat KUBE-SERVICES']);
    expect(bench.notes.take()?.changes).toHaveLength(3);
  });

  test('of thousands of chains notes their table', () => {
    const bench = new Bench();
    const numbers = Array.from({ length: 5001 }, (_, index) => index);
    bench.feed(stranger, ...numbers.map((index) => chainGone(`KUBE-SVC-${base32(index)}`)), end(1));
    expect(bench.foreign).toEqual(['all of nat']);
  });

  test('that was lost notes everything', () => {
    const bench = new Bench();
    bench.feed(stranger, ruleGone(svc));
    bench.notes.noteLoss();
    expect(bench.foreign).toEqual(['all']);
    expect(bench.notes.take()).toMatchObject({ kind: 'unknown', process: undefined });
  });
});

describe('our own write', () => {
  test('is known by its socket', () => {
    const bench = new Bench();
    bench.feed(own, ruleGone(svc), end(1, 99_999));
    expect([bench.notes.take(), bench.foreign]).toEqual([undefined, []]);
  });

  test('is known by its process when the socket has another number', () => {
    const bench = new Bench();
    bench.feed(0xffffff00, ruleGone(svc), end(1, own));
    expect([bench.notes.take(), bench.foreign]).toEqual([undefined, []]);
  });

  test('does not hide the next foreign change', () => {
    const bench = new Bench();
    bench.feed(own, ruleGone(svc), end(1, own));
    bench.feed(stranger, ruleGone(svc), end(2));
    expect(bench.foreign).toEqual([`nat ${svc}`]);
  });
});

/** 16 letters that stand for a number. */
function base32(value: number): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  return Array.from({ length: 16 }, (_, at) => letters[(value >> (5 * (at % 4))) & 31]).join('');
}
