import { expect, test } from 'vitest';
import { diffTables } from '../forwarding/diff-tables.ts';
import type { ForwardingTable } from '../forwarding/forwarding-table.ts';
import { parseIp } from '../ip/address.ts';
import { parsePort } from '../ip/port.ts';
import { service, slice, tableOptions } from '../testing/builders.ts';
import { tableOf } from '../testing/cluster.ts';
import { ManualClock } from '../testing/manual-clock.ts';
import { type GoneFrontend, GoneFrontends, goneFrontends } from './gone-frontends.ts';
import { flowJudge } from './stale-flows.ts';

const nodePortCidrs = ['192.0.2.0/24'];

/** A table of Services at 10.96.0.10, `port` of the protocol each, with one endpoint; `more` is added to the Service. */
function tableWith(
  ports: Parameters<typeof service>[1] & { readonly endpoint?: string },
  name = 'kube-system/dns',
): ForwardingTable {
  const { endpoint = '10.244.1.1', ...more } = ports;
  return tableOf(
    {
      services: [service(name, more)],
      slices: [slice(name, { ports: [{ protocol: 'UDP', port: 5353 }], endpoints: [endpoint] })],
    },
    tableOptions({ nodePortCidrs }),
  );
}

const udp = { protocol: 'UDP', port: 53, nodePort: 30053 } as const;
const before = tableWith({ ports: [udp], externalIps: ['198.51.100.5'] });
const empty = tableOf({}, tableOptions({ nodePortCidrs }));
const all = ['10.96.0.10:53', '198.51.100.5:53', 'anyNodePortAddress:30053'];

function gone(from: ForwardingTable, to: ForwardingTable): readonly string[] {
  return goneFrontends(from, to, diffTables(from, to)).map(({ address, port }) => `${address}:${port}`);
}

test.each<[string, ForwardingTable, ForwardingTable, readonly string[]]>([
  ['a deleted Service', before, empty, all],
  ['a new Service', empty, before, []],
  ['a removed external IP', before, tableWith({ ports: [udp] }), ['198.51.100.5:53']],
  [
    'another NodePort',
    before,
    tableWith({ ports: [{ ...udp, nodePort: 30054 }], externalIps: ['198.51.100.5'] }),
    ['anyNodePortAddress:30053'],
  ],
  ['another endpoint', before, tableWith({ ports: [udp], externalIps: ['198.51.100.5'], endpoint: '10.244.1.2' }), []],
  ['the protocol TCP instead of UDP', before, tableWith({ ports: [{ port: 53, nodePort: 30053 }] }), all],
  ['a deleted TCP Service', tableWith({ ports: [{ port: 53 }] }), empty, []],
])('frontends that go with %s', (_, from, to, expected) => {
  expect(gone(from, to)).toEqual(expected);
});

function isStale(table: ForwardingTable, destination: string, destinationPort: number, replySource: string): boolean {
  const judge = flowJudge({
    table,
    isLocalAddress: (address) => address === '192.0.2.1',
    gone: goneFrontends(before, table, diffTables(before, table)),
  });
  if (!judge.destinationPorts.has(parsePort(destinationPort))) return false;
  return judge.isStale({
    source: parseIp('203.0.113.9'),
    sourcePort: parsePort(40_000),
    destination: parseIp(destination),
    destinationPort: parsePort(destinationPort),
    replySource: parseIp(replySource),
    replySourcePort: parsePort(5353),
  });
}

test.each<[string, readonly [string, number, string], boolean]>([
  ['to the cluster IP, answered by an endpoint it had', ['10.96.0.10', 53, '10.244.1.1'], true],
  ['to the NodePort of this node', ['192.0.2.1', 30_053, '10.244.1.1'], true],
  ['to the same port of another node', ['192.0.2.99', 30_053, '10.244.1.1'], false],
  ['answered by what another program chose', ['10.96.0.10', 53, '10.244.9.9'], false],
  ['that was not translated', ['10.96.0.10', 53, '10.96.0.10'], false],
])('after its Service was deleted, a flow %s', (_, flow, expected) => {
  expect(isStale(empty, ...flow)).toBe(expected);
});

test('a frontend that moved to another Service is judged by that one', () => {
  const moved = tableWith({ ports: [udp], endpoint: '10.244.2.2' }, 'shop/other');
  expect(isStale(moved, '10.96.0.10', 53, '10.244.1.1')).toBe(true);
  expect(isStale(moved, '10.96.0.10', 53, '10.244.2.2')).toBe(false);
});

test('each is remembered until a look succeeds that began a second after it went', async () => {
  const clock = new ManualClock();
  const remembered = new GoneFrontends(clock);
  const frontends = goneFrontends(before, empty, diffTables(before, empty));
  remembered.add(frontends);
  remembered.noteLook(clock.monotonic());
  await clock.advance(999);
  remembered.noteLook(clock.monotonic());
  expect(remembered.current).toEqual(frontends);
  await clock.advance(1);
  remembered.noteLook(clock.monotonic());
  expect(remembered.current).toEqual([]);
});

test('10,000 are remembered, the newest', () => {
  const remembered = new GoneFrontends(new ManualClock());
  const one = (port: number): GoneFrontend => ({
    address: parseIp('10.96.0.10'),
    port: parsePort(port),
    endpoints: new Set(),
  });
  remembered.add(Array.from({ length: 10_001 }, (_, index) => one(index + 1)));
  expect([remembered.current.length, remembered.current[0]?.port]).toEqual([10_000, 2]);
});
