import { diffTables, type ForwardingTable, parseIp } from '@switchyard/core';
import { ManualClock, service, slice, tableOf } from '@switchyard/core/testing';
import { clearMap } from '@switchyard/native/testing';
import { describe, expect, test } from 'vitest';
import type { MapSet } from '../kernel.ts';
import { frontendScopes, offsetOf, sizeOf, smallestSizes } from '../../render/layouts.ts';
import { addressBytes } from '../../render/settings/address-bytes.ts';
import { memoryMaps } from '../../testing/index.ts';
import { dumpMaps } from './dump.ts';
import { ServiceWriter } from './service-writer.ts';

/** Carts at 10.96.0.1:80, NodePort 30080 and a load balancer with source ranges, behind one endpoint; shoes at 10.96.0.2:80. */
function tableWith(...more: readonly string[]): ForwardingTable {
  const cart = service('shop/cart', {
    clusterIps: ['10.96.0.1'],
    ports: [{ port: 80, nodePort: 30080 }],
    loadBalancerIps: ['198.51.100.1'],
    sourceRanges: ['203.0.113.0/24'],
  });
  const others = ['shop/shoes', ...more].map((key, index) => service(key, { clusterIps: [`10.96.0.${index + 2}`] }));
  const slices = [
    slice('shop/cart', { endpoints: ['10.244.1.1'] }),
    slice('shop/shoes', { endpoints: ['10.244.1.2'] }),
  ];
  return tableOf({ services: [cart, ...others], slices });
}

function bench() {
  const maps = memoryMaps(smallestSizes);
  const writer = new ServiceWriter(maps, { clock: new ManualClock() });
  const table = tableWith();
  writer.applyFull(table);
  const cart = [...writer.services()].find(({ key }) => key.startsWith('shop/cart'))?.id ?? 0;
  return { maps, writer, table, cart };
}

function frontendKey(address: string, port: number, scope: number = frontendScopes.address): Uint8Array {
  const key = new Uint8Array(sizeOf('frontend_key'));
  if (scope !== frontendScopes.nodePort) key.set(addressBytes(parseIp(address)));
  new DataView(key.buffer).setUint16(offsetOf('frontend_key', 'port'), port);
  key[offsetOf('frontend_key', 'protocol')] = port === 0 ? 0 : 6;
  key[offsetOf('frontend_key', 'scope')] = scope;
  return key;
}

const value = new Uint8Array(8).fill(1);

interface Place {
  readonly maps: MapSet;
  readonly cart: number;
}

describe('a change of a map by another process is reported and repaired', () => {
  test.each<[string, (place: Place) => unknown, readonly string[]]>([
    ['nothing', () => undefined, []],
    [
      'the record of a Service',
      ({ maps, cart }) => maps.services.values().fill(9, cart * sizeOf('service'), cart * sizeOf('service') + 8),
      ['map services: the record of shop/cart:/TCP edited'],
    ],
    [
      'the set of a Service, back to no endpoint',
      ({ maps, cart }) => maps.services.values().fill(0, cart * sizeOf('service'), cart * sizeOf('service') + 8),
      ['map services: the record of shop/cart:/TCP edited'],
    ],
    [
      'the address of an endpoint',
      ({ maps }) => maps.endpoints.values().fill(9, sizeOf('endpoint') + 12, sizeOf('endpoint') + 16),
      ['map endpoints: 10.244.1.1:8080 of shop/cart:/TCP edited'],
    ],
    [
      'a slot',
      ({ maps }) => maps.slots.values().fill(0, 0, 64),
      ['map slots: an endpoint of shop/cart:/TCP edited', 'map slots: an endpoint of shop/shoes:/TCP edited'],
    ],
    [
      'a frontend goes',
      ({ maps }) => maps.frontends.delete(frontendKey('10.96.0.1', 80)),
      ['map frontends: 10.96.0.1:80/TCP of shop/cart:/TCP deleted'],
    ],
    [
      'a NodePort leads elsewhere',
      ({ maps }) => maps.frontends.update(frontendKey('', 30_080, frontendScopes.nodePort), value),
      ['map frontends: NodePort 30080/TCP of shop/cart:/TCP edited'],
    ],
    [
      'a guard goes',
      ({ maps }) => maps.frontends.delete(frontendKey('10.96.0.2', 0, frontendScopes.guard)),
      ['map frontends: guard of 10.96.0.2 deleted'],
    ],
    [
      'a frontend comes',
      ({ maps }) => maps.frontends.update(frontendKey('10.96.9.9', 81), value),
      ['map frontends: 10.96.9.9:81/TCP added'],
    ],
    ['all source ranges go', ({ maps }) => clearMap(maps.source_ranges), ['map source_ranges: a source range deleted']],
    [
      'everybody may come',
      ({ maps: { source_ranges: ranges } }) => {
        const key = ranges.entries().keys.slice(0, 24);
        key[0] = 32;
        ranges.update(key.fill(0, 8), Uint8Array.of(1));
      },
      ['map source_ranges: a source range added'],
    ],
  ])('%s', (_, damage, words) => {
    const { maps, writer, cart } = bench();
    const before = dumpMaps(maps);
    damage({ maps, cart });
    expect(writer.findDamage()).toEqual(words);
    expect(writer.repair()).toBeGreaterThanOrEqual(words.length);
    expect(writer.findDamage()).toEqual([]);
    expect(dumpMaps(maps)).toBe(before);
  });
});

test('of many changes of one kind the first few are reported', () => {
  const { maps, writer } = bench();
  for (let port = 1; port <= 100; port++) maps.frontends.update(frontendKey('10.96.9.9', port), value);
  const told = [...writer.scanDamage()].map((words) => words.length);
  expect(Math.max(...told)).toBe(6);
  expect(writer.repair()).toBe(100);
});

test.each<[string, readonly string[], readonly string[]]>([
  ['come', [], ['shop/new', 'shop/newer']],
  ['go', ['shop/new', 'shop/newer'], []],
])('our own changes between two steps are no damage: Services %s', (_, first, then) => {
  for (let at = 0; at < 12; at++) {
    const { writer, table } = bench();
    const before = tableWith(...first);
    writer.applyDelta(diffTables(table, before));
    const words: string[] = [];
    let step = 0;
    for (const part of writer.scanDamage()) {
      if (step++ === at) writer.applyDelta(diffTables(before, tableWith(...then)));
      words.push(...part);
    }
    expect(step).toBeGreaterThan(6);
    expect(words).toEqual([]);
  }
});
