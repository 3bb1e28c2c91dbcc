import { expect, test } from 'vitest';
import { diffTables } from '../../model/forwarding/build-table.ts';
import type { ForwardingTable } from '../../model/forwarding/forwarding-table.ts';
import { parseIp } from '../../model/ip/address.ts';
import { parsePort } from '../../model/ip/port.ts';
import { serviceKey, type ServicePortKey, servicePortKey } from '../../model/records/keys.ts';
import { service, slice, tableOptions } from '../../testing/builders.ts';
import { tableOf } from '../../testing/cluster.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { flowJudge, type FormerEndpoints, formerEndpoints, RecentEndpoints, type UdpFlow } from './stale-flows.ts';

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
      slices: [
        slice(name, { ports: ['', 'b'].map((name) => ({ name, protocol: 'UDP', port: 5353 })), endpoints: [endpoint] }),
      ],
    },
    tableOptions({ nodePortCidrs }),
  );
}

const udp = { protocol: 'UDP', port: 53, nodePort: 30053 } as const;
const before = tableWith({ ports: [udp], externalIps: ['198.51.100.5'] });
const empty = tableOf({}, tableOptions({ nodePortCidrs }));
const all = ['10.96.0.10:53', '198.51.100.5:53', 'anyNodePortAddress:30053'];
const externalIps = ['198.51.100.5'];

/** Places that lose endpoints, with how many. */
function lost(from: ForwardingTable, to: ForwardingTable): readonly string[] {
  return formerEndpoints(from, to, diffTables(from, to)).map(
    ({ address, port, endpoints }) => `${address}:${port} -${endpoints.size}`,
  );
}

const each = (places: readonly string[]): readonly string[] => places.map((place) => `${place} -1`);

test.each<[string, ForwardingTable, ForwardingTable, readonly string[]]>([
  ['a deleted Service', before, empty, each(all)],
  ['a new Service', empty, before, []],
  ['a removed external IP', before, tableWith({ ports: [udp] }), each(['198.51.100.5:53'])],
  [
    'a removed port',
    tableWith({ ports: [udp, { ...udp, name: 'b', port: 54, nodePort: 30054 }] }),
    tableWith({ ports: [udp] }),
    each(['10.96.0.10:54', 'anyNodePortAddress:30054']),
  ],
  [
    'another NodePort',
    before,
    tableWith({ ports: [{ ...udp, nodePort: 30054 }], externalIps }),
    each(['anyNodePortAddress:30053']),
  ],
  ['another endpoint', before, tableWith({ ports: [udp], externalIps, endpoint: '10.244.1.2' }), each(all)],
  ['the same endpoints', before, tableWith({ ports: [udp], externalIps }), []],
  ['the protocol TCP instead of UDP', before, tableWith({ ports: [{ port: 53, nodePort: 30053 }] }), each(all)],
  ['a deleted TCP Service', tableWith({ ports: [{ port: 53 }] }), empty, []],
])('what is lost with %s', (_, from, to, expected) => {
  expect(lost(from, to)).toEqual(expected);
});

function isStale(table: ForwardingTable, destination: string, destinationPort: number, replySource: string): boolean {
  const judge = flowJudge({
    table,
    isLocalAddress: (address) => address === '192.0.2.1',
    former: formerEndpoints(before, table, diffTables(before, table)),
  });
  if (!judge.destinationPorts.has(parsePort(destinationPort))) return false;
  return judge.isStale(flowTo(destination, destinationPort, replySource));
}

function flowTo(destination: string, destinationPort: number, replySource: string): UdpFlow {
  return {
    source: parseIp('203.0.113.9'),
    sourcePort: parsePort(40_000),
    destination: parseIp(destination),
    destinationPort: parsePort(destinationPort),
    replySource: parseIp(replySource),
    replySourcePort: parsePort(5353),
  };
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

test('a removed NodePort counts on every address of the node, also on those not selected any more', () => {
  const table = tableOf({}, tableOptions({ nodePortCidrs: [] }));
  expect(isStale(table, '192.0.2.1', 30_053, '10.244.1.1')).toBe(true);
});

test('two Services that had one place after another lose the flows of both', () => {
  const other = tableWith({ ports: [udp], endpoint: '10.244.2.2' }, 'shop/other');
  const former = [before, other].flatMap((table) => formerEndpoints(table, empty, diffTables(table, empty)));
  const judge = flowJudge({ table: empty, isLocalAddress: () => false, former });
  const stale = ['10.244.1.1', '10.244.2.2', '10.244.3.3'].filter((answer) =>
    judge.isStale(flowTo('10.96.0.10', 53, answer)),
  );
  expect(stale).toEqual(['10.244.1.1', '10.244.2.2']);
});

const none: ReadonlySet<ServicePortKey> = new Set();

test('each is remembered until a look succeeds that began a second after it went', async () => {
  const clock = new ManualClock();
  const recent = new RecentEndpoints(clock);
  const former = formerEndpoints(before, empty, diffTables(before, empty));
  expect(recent.noteApplied(former, none)).toEqual({ isNew: true, forgotten: 0 });
  recent.noteLook(clock.monotonic());
  await clock.advance(999);
  recent.noteLook(clock.monotonic());
  expect(recent.current).toEqual(former);
  await clock.advance(1);
  recent.noteLook(clock.monotonic());
  expect(recent.current).toEqual([]);
});

test('those of a Service that the kernel still has are held back, and their second begins when it goes', async () => {
  const clock = new ManualClock();
  const recent = new RecentEndpoints(clock);
  const former = formerEndpoints(before, empty, diffTables(before, empty));
  const failed = new Set(former.map(({ service }) => service));
  expect(recent.noteApplied(former, failed)).toEqual({ isNew: false, forgotten: 0 });
  expect(recent.current).toEqual([]);
  await clock.advance(5000);
  expect(recent.noteApplied([], none)).toEqual({ isNew: true, forgotten: 0 });
  recent.noteLook(clock.monotonic());
  expect(recent.current).toEqual(former);
});

test('the newest 10,000 are remembered, and the others are counted', () => {
  const recent = new RecentEndpoints(new ManualClock());
  const one = (port: number): FormerEndpoints => ({
    service: servicePortKey(serviceKey('kube-system', 'dns'), '', 'UDP'),
    address: parseIp('10.96.0.10'),
    port: parsePort(port),
    endpoints: new Set(),
  });
  const many = Array.from({ length: 10_001 }, (_, index) => one(index + 1));
  expect(recent.noteApplied(many, none)).toEqual({ isNew: true, forgotten: 1 });
  expect([recent.current.length, recent.current[0]?.port]).toEqual([10_000, 2]);
});
