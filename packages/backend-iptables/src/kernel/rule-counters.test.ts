import { millis, type ServicePortKey } from '@switchyard/core';
import { type ServiceCounters } from '@switchyard/core/engine';
import { ManualClock } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import type { Change } from './apply/change.ts';
import type { OwnedEntry } from './apply/entry-owners.ts';
import type { TableName } from '../render/chains.ts';
import { RuleCounters } from './rule-counters.ts';

const cart = 'shop/cart:/TCP' as ServicePortKey;
const { signal } = new AbortController();

function entry(table: TableName, chain: string, rule: string): OwnedEntry {
  return { key: cart, table, chain, rule };
}

const cluster = entry('nat', 'KUBE-SERVICES', '-d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-X');
const balanced = entry('nat', 'KUBE-SERVICES', '-d 198.51.100.7/32 -p tcp -m tcp --dport 80 -j KUBE-EXT-X');
const nodePort = entry('nat', 'KUBE-NODEPORTS', '-p tcp -m tcp --dport 30080 -j KUBE-EXT-X');
const rejected = entry('filter', 'KUBE-SERVICES', '-d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j REJECT');
const dropped = entry('filter', 'KUBE-SERVICES', '-d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j DROP');
const droppedOutside = entry('filter', 'KUBE-EXTERNAL-SERVICES', '-p tcp -m tcp --dport 30080 -j DROP');
const fenced = entry('filter', 'KUBE-PROXY-FIREWALL', '-d 198.51.100.7/32 -p tcp -m tcp --dport 80 -j DROP');

/** Counters over a kernel that is a list. */
class Bench {
  readonly clock = new ManualClock();
  readonly listed: string[] = [];
  /** Duration of reading a chain. */
  cost = 0;
  kernel: readonly (readonly [OwnedEntry, number])[] = [];
  entries: readonly OwnedEntry[] = [];
  readonly counters = new RuleCounters({
    clock: this.clock,
    entries: () => this.entries,
    client: {
      list: async (table, chain) => {
        this.listed.push(`${table} ${chain}`);
        await this.clock.advance(millis(this.cost));
        return this.kernel
          .filter(([one]) => one.table === table && one.chain === chain)
          .map(([{ rule }, packets]) => ({ rule, packets, bytes: 60 * packets }));
      },
    },
  });

  /** The kernel holds the rules of the Service, with these counts. */
  set(...kernel: readonly (readonly [OwnedEntry, number])[]): void {
    this.kernel = kernel;
    this.entries = kernel.map(([one]) => one);
  }

  async read(): Promise<ServiceCounters | undefined> {
    await this.clock.advance(millis(1));
    return (await this.counters.read(signal)).get(cart);
  }
}

const none: ServiceCounters = { connections: 0, drops: { noLocalEndpoint: 0, noEndpoints: 0, sourceRange: 0 } };

describe('what a rule counts', () => {
  test.each<[string, readonly (readonly [OwnedEntry, number])[], number, Partial<ServiceCounters['drops']>]>([
    [
      'frontends of all kinds are connections',
      [
        [cluster, 1],
        [balanced, 2],
        [nodePort, 4],
      ],
      7,
      {},
    ],
    ['what no endpoint serves is a connection, too', [[rejected, 3]], 3, { noEndpoints: 3 }],
    ['the same from inside where none is on this node', [[dropped, 3]], 3, { noLocalEndpoint: 3 }],
    [
      'from outside a rule of nat has counted it',
      [
        [nodePort, 5],
        [droppedOutside, 3],
      ],
      5,
      { noLocalEndpoint: 3 },
    ],
    [
      'and so did what comes from nowhere allowed',
      [
        [balanced, 5],
        [fenced, 2],
      ],
      5,
      { sourceRange: 2 },
    ],
  ])('%s', async (_, kernel, connections, drops) => {
    const bench = new Bench();
    bench.set(...kernel);
    expect(await bench.read()).toEqual({ connections, drops: { ...none.drops, ...drops } });
  });

  test('nothing is nothing', async () => {
    const bench = new Bench();
    bench.set([cluster, 0]);
    expect(await bench.read()).toEqual(none);
  });

  test('a rule that is there twice counts as both', async () => {
    const bench = new Bench();
    bench.set([cluster, 2], [cluster, 3]);
    bench.entries = [cluster];
    expect((await bench.read())?.connections).toBe(5);
  });
});

describe('totals go on', () => {
  test.each<[string, Change]>([
    ['when the rule is deleted and comes back', { kind: 'delete', ...cluster }],
    ['when the rule is moved', { kind: 'move', ...cluster }],
    ['when its chain is written anew', { kind: 'list', table: 'nat', name: 'KUBE-SERVICES', tail: [] }],
  ])('%s', async (_, change) => {
    const bench = new Bench();
    bench.set([cluster, 3]);
    await bench.read();
    bench.counters.noteWritten(change);
    bench.set([cluster, 4]);
    expect((await bench.read())?.connections).toBe(7);
  });

  test('when endpoints go, and with them the rule, and come back', async () => {
    const bench = new Bench();
    bench.set([cluster, 3]);
    await bench.read();
    bench.set([rejected, 1]);
    expect(await bench.read()).toEqual({ connections: 4, drops: { ...none.drops, noEndpoints: 1 } });
    bench.set([cluster, 1]);
    expect((await bench.read())?.connections).toBe(5);
  });

  test('when another rule is deleted, without being counted twice', async () => {
    const bench = new Bench();
    bench.set([cluster, 3], [balanced, 1]);
    await bench.read();
    bench.counters.noteWritten({ kind: 'delete', ...balanced });
    bench.counters.noteWritten({ kind: 'remove', table: 'filter', name: 'KUBE-SERVICES' });
    bench.set([cluster, 4]);
    expect((await bench.read())?.connections).toBe(5);
  });
});

describe('reading', () => {
  test('lists only chains in which Services have rules', async () => {
    const bench = new Bench();
    bench.set([cluster, 0], [balanced, 0], [fenced, 0]);
    await bench.read();
    expect(bench.listed).toEqual(['nat KUBE-SERVICES', 'filter KUBE-PROXY-FIREWALL']);
  });

  test('takes 2 % of a core at most: until then the last one is served', async () => {
    const bench = new Bench();
    bench.cost = 200;
    bench.set([cluster, 1]);
    await bench.read();
    bench.set([cluster, 2]);
    await bench.clock.advance(millis(9_900));
    expect((await bench.read())?.connections).toBe(1);
    await bench.clock.advance(millis(100));
    expect((await bench.read())?.connections).toBe(2);
  });
});
