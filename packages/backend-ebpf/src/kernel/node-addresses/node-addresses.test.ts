import { parseCidr, parseIp } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import { MemoryBpfMap } from '@switchyard/native/testing';
import { describe, expect, test } from 'vitest';
import { mapShapes, smallestSizes } from '../../render/layouts.ts';
import { addressBytes } from '../../render/settings/address-bytes.ts';
import { NodeAddresses } from './node-addresses.ts';

const everywhere = { nodePortCidrs: [parseCidr('0.0.0.0/0')] };

function bench(...addresses: readonly string[]) {
  const maps = { node_addresses: new MemoryBpfMap(mapShapes(smallestSizes).node_addresses) };
  const state = { addresses };
  const node = new NodeAddresses({
    ipFamily: 'IPv4',
    maps: () => maps,
    clock: new ManualClock(),
    read: () => state.addresses.map(parseIp),
  });
  const flagsOf = (ip: string): number | undefined => maps.node_addresses.lookup(addressBytes(parseIp(ip)))?.[0];
  return { node, state, flagsOf, map: maps.node_addresses };
}

describe('NodeAddresses', () => {
  test('only what differs is written', () => {
    const { node, state, flagsOf } = bench('127.0.0.1', '192.0.2.1', '192.0.2.2');
    expect(node.apply(everywhere)).toBe(2);
    expect(node.apply(everywhere)).toBe(0);
    state.addresses = ['192.0.2.2', '192.0.2.3'];
    expect(node.apply(everywhere)).toBe(2);
    expect(['127.0.0.1', '192.0.2.1', '192.0.2.2', '192.0.2.3'].map(flagsOf)).toEqual([undefined, undefined, 1, 1]);
  });

  test('when NodePorts answer elsewhere, addresses stay and their flag changes', () => {
    const { node, flagsOf } = bench('192.0.2.1', '198.51.100.1');
    node.apply(everywhere);
    expect(node.apply({ nodePortCidrs: [parseCidr('198.51.100.0/24')] })).toBe(1);
    expect(['192.0.2.1', '198.51.100.1'].map(flagsOf)).toEqual([0, 1]);
  });

  test.each<[string, (map: MemoryBpfMap) => void, boolean]>([
    ['nothing', () => undefined, false],
    ['an address less', (map) => map.delete(addressBytes(parseIp('192.0.2.1'))), true],
    ['an address more', (map) => map.update(addressBytes(parseIp('192.0.2.9')), Uint8Array.of(1, 0, 0, 0)), true],
    ['another flag', (map) => map.update(addressBytes(parseIp('192.0.2.1')), Uint8Array.of(0, 0, 0, 0)), true],
  ])('damage: %s', (_, damage, isFound) => {
    const { node, map } = bench('192.0.2.1');
    node.apply(everywhere);
    damage(map);
    expect(node.findDamage()).toEqual(isFound ? ['map node_addresses edited'] : []);
    expect(node.apply(everywhere)).toBe(isFound ? 1 : 0);
    expect(node.findDamage()).toEqual([]);
  });

  test('a new address is no damage: it is written after the event of the kernel', () => {
    const { node, state } = bench('192.0.2.1');
    node.apply(everywhere);
    state.addresses = ['192.0.2.1', '192.0.2.2'];
    expect(node.findDamage()).toEqual([]);
  });
});
