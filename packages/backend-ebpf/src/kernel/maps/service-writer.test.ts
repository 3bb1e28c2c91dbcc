import { diffTables, type ForwardingTable, parseIp, UsageError } from '@switchyard/core';
import { addressNumber, here, situation, type SituationSpec, there } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import type { MapSet } from '../kernel.ts';
import { type MapSizes, smallestSizes } from '../../render/layouts.ts';
import {
  type MapFaults,
  memoryMaps,
  noFaults,
  type PickRequest,
  pickOutcomes,
  pinClient,
  StepClock,
} from '../../testing/index.ts';
import { dumpMaps } from './dump.ts';
import { MapReader } from './read-maps.ts';
import { ServiceWriter } from './service-writer.ts';

/** One Service with endpoints 1 to `count`. */
function serviceOf(count: number, spec: SituationSpec = {}): ForwardingTable {
  const endpoints = Array.from({ length: count }, (_, index) => there(addressNumber(10, index + 1)));
  return situation({ cart: { clusterIps: ['10.96.0.1'], ...spec, endpoints } });
}

interface Bench {
  readonly maps: MapSet;
  readonly writer: ServiceWriter;
  readonly clock: StepClock;
  readonly faults: MapFaults;
}

function bench(sizes: MapSizes = smallestSizes): Bench {
  const clock = new StepClock();
  const faults = noFaults();
  const maps = memoryMaps(sizes, faults);
  return { maps, writer: new ServiceWriter(maps, { clock }), clock, faults };
}

function freshDump(table: ForwardingTable): string {
  const { maps, writer } = bench();
  writer.applyFull(table);
  return dumpMaps(maps);
}

describe('what a change costs', () => {
  test.each<[string, ForwardingTable, ForwardingTable, number, number]>([
    // Three words of a record (an IPv4 address begins with zeros), eleven slots, the commit.
    ['one endpoint more of ten', serviceOf(10), serviceOf(11), 3 + 11 + 1, 0],
    // Nine slots, the commit, the flags of the deleted one.
    ['one endpoint less of ten', serviceOf(10), serviceOf(9), 9 + 1 + 1, 0],
    ['the last endpoint gone: a frontend that rejects, an empty set, flags', serviceOf(1), serviceOf(0), 1 + 1 + 1, 1],
    ['another timeout of affinity', serviceOf(3, { affinitySeconds: 5 }), serviceOf(3, { affinitySeconds: 6 }), 1, 0],
    ['nothing', serviceOf(3), serviceOf(3), 0, 0],
    ['a Service gone: guard and frontend, and the flags of its endpoints', serviceOf(3), situation({}), 2 + 3, 2],
  ])('%s', (_, before, after, writes, calls) => {
    const { writer, faults } = bench();
    writer.applyFull(before);
    faults.calls = 0;
    const result = writer.applyDelta(diffTables(before, after));
    expect({ writes: result.writes, calls: faults.calls }).toEqual({ writes, calls });
  });

  test('does not depend on how many Services there are', () => {
    const others = Object.fromEntries(
      Array.from({ length: 300 }, (_, index) => [
        `s${index}`,
        {
          clusterIps: [`10.97.0.${index + 1}`].slice(0, index < 200 ? 1 : 0),
          endpoints: [there(addressNumber(10, 500 + index))],
        },
      ]),
    );
    const table = (count: number): ForwardingTable =>
      situation({
        ...others,
        cart: {
          clusterIps: ['10.96.0.1'],
          endpoints: Array.from({ length: count }, (_, index) => there(addressNumber(10, index + 1))),
        },
      });
    const { writer } = bench();
    const before = table(10);
    writer.applyFull(before);
    expect(writer.applyDelta(diffTables(before, table(11))).writes).toBe(15);
  });
});

describe('a process without memory', () => {
  const table = situation({
    cart: { clusterIps: ['10.96.0.1'], affinitySeconds: 10, endpoints: [here('10.244.1.1'), there('10.244.2.1')] },
    shop: {
      clusterIps: ['10.96.0.2'],
      loadBalancerIps: ['198.51.100.1'],
      sourceRanges: ['203.0.113.0/24'],
      endpoints: [there('10.244.2.1')],
    },
  });

  test('finds everything again and writes nothing; ids stay', () => {
    const { maps, writer, clock } = bench();
    writer.applyFull(table);
    const next = new ServiceWriter(maps, { clock });
    expect(next.applyFull(table)).toEqual({ writes: 0, failed: new Map(), gone: [] });
    expect([...next.services()]).toEqual([...writer.services()]);
  });

  test('keeps clients where they are while other endpoints of their Service come and go', () => {
    const { maps, writer, clock } = bench();
    writer.applyFull(table);
    const request: PickRequest = {
      destination: '10.96.0.1' as PickRequest['destination'],
      port: 80,
      protocol: 'TCP',
      from: 'pod',
      client: { kind: 'networkNamespace', cookie: 77n },
    };
    const all = pickOutcomes(maps, request);
    const mine = all.find((one) => one.kind === 'forward' && one.address === '10.244.2.1');
    if (mine?.kind !== 'forward') expect.fail('no such endpoint');
    pinClient(maps, { ...mine, client: request.client });
    const after = situation({
      cart: { clusterIps: ['10.96.0.1'], affinitySeconds: 10, endpoints: [there('10.244.2.1'), there('10.244.2.9')] },
    });
    new ServiceWriter(maps, { clock }).applyFull(after);
    expect(pickOutcomes(maps, request)).toEqual([mine]);
    const without = situation({
      cart: { clusterIps: ['10.96.0.1'], affinitySeconds: 10, endpoints: [there('10.244.2.9')] },
    });
    new ServiceWriter(maps, { clock }).applyFull(without);
    expect(pickOutcomes(maps, request)).toMatchObject([{ kind: 'forward', address: '10.244.2.9' }]);
  });

  test('gives no Service an id to which a frontend leads that another one has now', () => {
    const ports = (nodePort: number): NonNullable<SituationSpec['ports']> => [{ port: 80, nodePort }];
    const { maps, writer, clock } = bench();
    writer.applyFull(
      situation({ a: { clusterIps: ['10.96.0.1'], ports: ports(30080), endpoints: [there('10.244.2.1')] } }),
    );
    const next = new ServiceWriter(maps, { clock });
    next.applyFull(
      situation({
        a: { clusterIps: ['10.96.0.1'], ports: ports(30081), endpoints: [there('10.244.2.1')] },
        b: { clusterIps: ['10.96.0.2'], ports: ports(30080), endpoints: [there('10.244.2.2')] },
      }),
    );
    expect([...next.services()].map(({ id }) => id)).toEqual([2, 3]);
  });

  test('does not allocate an id that was in use a moment ago', () => {
    const { maps, writer, clock } = bench();
    writer.applyFull(serviceOf(2));
    writer.applyFull(situation({}));
    const next = new ServiceWriter(maps, { clock });
    next.applyFull(situation({ shop: { clusterIps: ['10.96.0.2'], endpoints: [there(addressNumber(10, 9))] } }));
    expect([...next.services()].map(({ id }) => id)).toEqual([2]);
    clock.step(1000);
    next.applyFull(situation({ cart: { clusterIps: ['10.96.0.7'] } }));
    expect([...next.services()].map(({ id }) => id)).toEqual([1]);
  });
});

describe('what the kernel refuses', () => {
  const table = situation({
    cart: { clusterIps: ['10.96.0.1'], endpoints: [there('10.244.2.1')] },
    shop: { clusterIps: ['10.96.0.2'], endpoints: [there('10.244.2.2')] },
  });
  const refused = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 96, 0, 1);

  test('is named, nothing of it stays, and everything else is there', () => {
    const { maps, writer, faults } = bench();
    faults.refused = refused;
    const result = writer.applyFull(table);
    expect([...result.failed.keys()]).toEqual(['shop/cart:/TCP']);
    const others = { ...table, services: new Map([...table.services].filter(([key]) => key === 'shop/shop:/TCP')) };
    expect(dumpMaps(maps)).toBe(freshDump(others));
    faults.refused = undefined;
    const upserted = [...table.services.values()].filter(({ key }) => result.failed.has(key));
    expect(writer.applyDelta({ upserted, removed: [], settingsChanged: false }).failed.size).toBe(0);
    expect(dumpMaps(maps)).toBe(freshDump(table));
  });

  test('is tried again until it is there, whichever calls fail', () => {
    const { maps, writer, faults } = bench();
    let state = 7;
    faults.random = () => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) / 2 ** 32;
    for (const next of [table, situation({}), table, serviceOf(3, { externalIps: ['198.51.100.9'] }), table]) {
      faults.failureRate = 0.4;
      for (let round = 0; round < 5; round++) writer.applyFull(next);
      faults.failureRate = 0;
      expect(writer.applyFull(next).failed.size).toBe(0);
      expect(dumpMaps(maps)).toBe(freshDump(next));
      expect(writer.applyFull(next).writes).toBe(0);
    }
  });

  test('a removed Service whose frontends stay is named, and goes the next time', () => {
    const { maps, writer, faults } = bench();
    writer.applyFull(table);
    faults.failureRate = 1;
    const gone = situation({ shop: { clusterIps: ['10.96.0.2'], endpoints: [there('10.244.2.2')] } });
    const result = writer.applyDelta(diffTables(table, gone));
    expect([...result.failed.keys()]).toEqual(['shop/cart:/TCP']);
    faults.failureRate = 0;
    writer.applyDelta({ upserted: [], removed: [...result.failed.keys()], settingsChanged: false });
    expect(dumpMaps(maps)).toBe(freshDump(gone));
  });

  test('a delta before the first full apply is an error of the caller', () => {
    const { writer } = bench();
    expect(() => writer.applyDelta(diffTables(undefined, table))).toThrow(UsageError);
  });
});

describe('maps that are too small', () => {
  const large = serviceOf(40);

  test.each<[keyof MapSizes, Partial<MapSizes>]>([
    ['endpoints', { endpoints: 16 }],
    ['slots', { slots: 16 }],
    ['services', { services: 1 }],
    ['frontends', { frontends: 1 }],
  ])('%s: nothing of the Service is written, and larger sizes are reported', (name, sizes) => {
    const { maps, writer } = bench({ ...smallestSizes, ...sizes });
    const result = writer.applyFull(large);
    expect([...result.failed.values()].map(({ message }) => message)).toEqual([
      expect.stringContaining(`map ${name} is full; it is written again when the map has grown`),
    ]);
    expect(result.grow?.[name]).toBeGreaterThan(sizes[name] ?? 0);
    expect(dumpMaps(maps)).toBe('');
  });
});

describe('deleted UDP endpoints', () => {
  const udp = (...ips: readonly string[]): ForwardingTable =>
    situation({
      dns: { clusterIps: ['10.96.0.1'], ports: [{ protocol: 'UDP', port: 53 }], endpoints: ips.map(there) },
    });

  test('are reported with id and generation, also those of deleted Services', () => {
    const { writer, maps, clock } = bench();
    const [first, second] = [udp('10.244.2.1', '10.244.2.2'), udp('10.244.2.2')];
    expect(writer.applyFull(first).gone).toEqual([]);
    expect(writer.applyDelta(diffTables(first, second)).gone).toEqual([
      { id: 1, generation: 1, address: '10.244.2.1', port: 8080 },
    ]);
    const next = new ServiceWriter(maps, { clock });
    expect(next.applyFull(situation({})).gone).toEqual([{ id: 2, generation: 1, address: '10.244.2.2', port: 8080 }]);
  });

  test('are not those that serve while they terminate, nor those of TCP', () => {
    const { writer } = bench();
    const before = udp('10.244.2.1', '10.244.2.2');
    const after = situation({
      dns: {
        clusterIps: ['10.96.0.1'],
        ports: [{ protocol: 'UDP', port: 53 }],
        endpoints: [{ ip: '10.244.2.1', terminating: true, node: 'n2' }, there('10.244.2.2')],
      },
    });
    writer.applyFull(before);
    expect(writer.applyDelta(diffTables(before, after)).gone).toEqual([]);
    const tcp = bench().writer;
    tcp.applyFull(serviceOf(2));
    expect(tcp.applyFull(serviceOf(1)).gone).toEqual([]);
  });
});

test('a Service with more endpoints than a set holds is named; one with as many is written', () => {
  const [first] = [...serviceOf(1).services.values()];
  const endpoint = first!.endpoints.Cluster[0]!;
  const ips = (count: number): ForwardingTable => {
    const all = Array.from({ length: count }, (_, index) => ({
      ...endpoint,
      address: parseIp(addressNumber(10, index)),
    }));
    const service = { ...first!, endpoints: { Cluster: all, Local: [] }, knownEndpoints: all };
    return { ...serviceOf(1), services: new Map([[service.key, service]]) };
  };
  const { writer, maps } = bench({ ...smallestSizes, endpoints: 131_072, slots: 131_072 });
  expect(writer.applyFull(ips(65_535)).failed.size).toBe(0);
  expect(dumpMaps(maps).split('\n').length).toBe(65_535 + 3);
  expect([...writer.applyFull(ips(65_536)).failed.values()][0]?.message).toContain(
    'a set holds 65535; split the Service',
  );
});

test('counts of the Service that had an id before are gone when another one gets it', () => {
  const { writer, maps, clock } = bench();
  writer.applyFull(serviceOf(1));
  const [{ id } = { id: 0 }] = [...writer.services()];
  const key = new Uint8Array(Uint32Array.of(id).buffer);
  const counts = maps.statistics.lookup(key);
  maps.statistics.update(key, counts!.fill(1));
  writer.applyFull(situation({}));
  clock.step(1000);
  writer.applyFull(situation({ other: { clusterIps: ['10.96.0.9'] } }));
  expect([...writer.services()].map((one) => one.id)).toEqual([id]);
  expect(maps.statistics.lookup(key)?.every((byte) => byte === 0)).toBe(true);
  // Readers that still hold a frontend of the former one see that the record is no longer its own.
  expect(new MapReader(maps).service(id)?.cookie).toBe(2);
});
