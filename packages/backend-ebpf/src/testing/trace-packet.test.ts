import { nftablesTraits } from '@switchyard/backend-nftables/traits';
import { explain, type Flow, type ForwardingTable, type IpAddress, parseIp, type Verdict } from '@switchyard/core';
import { comparableVerdict, flow, here, situation, type SituationSpec, there } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import type { MapSet } from '../kernel/kernel.ts';
import { nodeAddressFlags, smallestSizes } from '../render/layouts.ts';
import { putAddress } from '../render/address-words.ts';
import { ServiceWriter } from '../kernel/maps/service-writer.ts';
import { memoryMaps } from './memory-kernel.ts';
import { StepClock } from './step-clock.ts';
import { type PacketPath, pickOutcomes, tracePacket } from './trace-packet.ts';

const endpoints = [here('10.244.1.1'), there('10.244.2.1')];
const services: Readonly<Record<string, SituationSpec>> = {
  plain: { clusterIps: ['10.96.0.1'], ports: [{ port: 80, nodePort: 30080 }], endpoints },
  local: {
    clusterIps: ['10.96.0.2'],
    ports: [{ port: 80, nodePort: 30081 }],
    external: 'Local',
    loadBalancerIps: ['198.51.100.2'],
    endpoints: [there('10.244.2.1')],
  },
  ranged: { clusterIps: ['10.96.0.3'], loadBalancerIps: ['198.51.100.3'], sourceRanges: ['203.0.113.0/24'], endpoints },
  none: { clusterIps: ['10.96.0.4'], loadBalancerIps: ['198.51.100.4'] },
};

function mapsOf(table: ForwardingTable): MapSet {
  const maps = memoryMaps(smallestSizes);
  new ServiceWriter(maps, { clock: new StepClock() }).applyFull(table);
  const address = new Uint32Array(4);
  putAddress(address, 0, parseIp('192.0.2.1'));
  maps.node_addresses.update(bytesOf(address), bytesOf(Uint32Array.of(nodeAddressFlags.nodePort)));
  return maps;
}

const bytesOf = (words: Uint32Array): Uint8Array => new Uint8Array(words.buffer);

/** Verdict for sockets, which are never masqueraded. */
function onSocket(verdict: Verdict, to: Flow): unknown {
  const seen = comparableVerdict(verdict, to);
  return seen.kind === 'forward' ? { ...seen, masquerade: false } : seen;
}

describe('programs do what the table says', () => {
  const table = situation(services);
  const maps = mapsOf(table);
  const destinations: readonly (readonly [string, boolean])[] = [
    ['10.96.0.1:80', false],
    ['10.96.0.2:80', false],
    ['10.96.0.4:80', false],
    ['198.51.100.2:80', false],
    ['198.51.100.4:80', false],
    ['192.0.2.1:30080', true],
    ['192.0.2.1:30081', true],
    ['192.0.2.7:30080', false],
    ['192.0.2.1:99', true],
  ];

  test.each(destinations)('to %s, on the wire and at sockets', (to, isLocal) => {
    for (const from of ['pod', 'node', 'outside'] as const) {
      const one = flow(from, to, { isLocal });
      const { verdict } = explain(table, one, nftablesTraits);
      expect(tracePacket(maps, one, { path: 'wire' })).toEqual(comparableVerdict(verdict, one));
      expect(tracePacket(maps, one, { path: 'socket' })).toEqual(onSocket(verdict, one));
    }
  });

  test('a client that is an endpoint is masqueraded on the wire', () => {
    const one = flow('pod', '10.96.0.1:80', { source: '10.244.1.1' });
    const { verdict } = explain(table, one, nftablesTraits);
    expect(tracePacket(maps, one, { path: 'wire' })).toEqual(comparableVerdict(verdict, one));
    expect(tracePacket(maps, one, { path: 'socket' })).toMatchObject({ kind: 'forward', masquerade: false });
  });

  test.each<[PacketPath, string, string]>([
    ['wire', '203.0.113.9', 'forward'],
    ['wire', '192.0.2.9', 'drop'],
    ['socket', '203.0.113.9', 'pass'],
  ])('source ranges on the %s path, from %s: %s', (path, source, kind) => {
    expect(tracePacket(maps, flow('outside', '198.51.100.3:80', { source }), { path }).kind).toBe(kind);
  });
});

test('a client comes back to its endpoint, where the Service keeps clients', () => {
  const one = flow('pod', '10.96.0.1:80');
  const options = { path: 'wire', returningTo: '10.244.2.1' as IpAddress } as const;
  const all = ['10.244.1.1:8080', '10.244.2.1:8080'];
  expect(tracePacket(mapsOf(situation(services)), one, options)).toMatchObject({ endpoints: all });
  const kept = mapsOf(situation({ plain: { ...services['plain'], affinitySeconds: 10 } }));
  expect(tracePacket(kept, one, options)).toMatchObject({ endpoints: ['10.244.2.1:8080'] });
});

test.each<[string, (maps: MapSet) => void]>([
  ['a record with another cookie', (maps) => void maps.services.values().fill(9, 32 + 20, 32 + 21)],
  ['a slot of another service', (maps) => void maps.slots.values().fill(9, 0, 1)],
  ['an endpoint that is not alive', (maps) => void maps.endpoints.values().fill(0, 32 + 18, 32 + 20)],
])('%s is a contradiction', (_, harm) => {
  const maps = mapsOf(situation({ plain: services['plain']! }));
  harm(maps);
  const { source: address, destination, destinationPort: port, protocol, from } = flow('pod', '10.96.0.1:80');
  const found = pickOutcomes(maps, { destination, port, protocol, from, client: { kind: 'address', address } });
  expect(found.map(({ kind }) => kind)).toContain('again');
});
