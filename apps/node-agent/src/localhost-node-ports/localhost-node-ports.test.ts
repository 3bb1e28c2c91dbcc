import {
  type ForwardingTable,
  type IpFamily,
  nodeName,
  type RecordedEvent,
  type ServicePortKey,
} from '@switchyard/core';
import {
  ManualClock,
  MemoryLogger,
  MemoryMetrics,
  type OptionsSpec,
  service,
  type ServiceSpec,
  slice,
  tableOf,
  tableOptions,
} from '@switchyard/core/testing';
import { beforeEach, expect, test } from 'vitest';
import { LocalhostNodePorts } from './localhost-node-ports.ts';
import { MemoryTcpNetwork } from './testing/memory-tcp-network.ts';

let network: MemoryTcpNetwork;
let clock: ManualClock;
let logger: MemoryLogger;
let metrics: MemoryMetrics;
let events: RecordedEvent[];

beforeEach(() => {
  network = new MemoryTcpNetwork();
  clock = new ManualClock();
  logger = new MemoryLogger();
  metrics = new MemoryMetrics();
  events = [];
});

function proxy(limit = Infinity, ipFamily: IpFamily = 'IPv4'): LocalhostNodePorts {
  return new LocalhostNodePorts({
    ipFamily,
    nodeName: nodeName('n1'),
    network,
    connections: { accept: () => undefined },
    limit,
    clock,
    random: () => 0,
    logger,
    metrics,
    events: { record: (event) => void events.push(event) },
  });
}

/** Services by name with their NodePort; of each a number of endpoints, one by default. */
type Ports = Readonly<Record<string, number | (ServiceSpec & { readonly count?: number })>>;

function tableFor(ports: Ports, options: OptionsSpec = { localhostNodePorts: 'proxy' }): ForwardingTable {
  const entries = Object.entries(ports);
  const services = entries.map(([name, given], index) => {
    const spec = typeof given === 'number' ? { ports: [{ nodePort: given }] } : given;
    return service(`shop/${name}`, { clusterIps: [`10.96.0.${index + 10}`], ...spec });
  });
  const slices = entries.map(([name, given]) => {
    const count = typeof given === 'number' ? 1 : (given.count ?? 1);
    return slice(`shop/${name}`, { ipFamily: 'IPv4', endpoints: ['10.244.1.1', '10.244.1.2'].slice(0, count) });
  });
  return tableOf({ services, slices }, tableOptions(options));
}

const none: ReadonlyMap<ServicePortKey, unknown> = new Map();
const failing = (name: string): ReadonlyMap<ServicePortKey, unknown> =>
  new Map([[`shop/${name}:/TCP` as ServicePortKey, new Error('refused')]]);
const gauge = 'kubeproxy_nftables_localhost_nodeport_listeners{ip_family=IPv4}';
const failures = 'kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total{ip_family=IPv4}';

test('listens for each TCP NodePort with endpoints, and follows them', async () => {
  await using one = proxy();
  const udp = { ports: [{ nodePort: 30053, protocol: 'UDP' as const }] };
  const empty = { ports: [{ nodePort: 30082 }], count: 0 };
  await one.sync({ table: tableFor({ cart: 30080, cash: 30081, empty, udp, plain: {} }), failed: none });
  expect(network.places).toEqual(['127.0.0.1:30080', '127.0.0.1:30081']);
  expect(metrics.values.get(gauge)).toBe(2);
  await one.sync({ table: tableFor({ cart: 30090, empty: { ...empty, count: 1 } }), failed: none });
  expect(network.places).toEqual(['127.0.0.1:30082', '127.0.0.1:30090']);
  await one.sync({ table: tableFor({}), failed: none });
  expect(network.places).toEqual([]);
  expect(metrics.values.get(gauge)).toBe(0);
  expect(logger.transitions).toEqual([]);
});

test('listens only while the table says `proxy`', async () => {
  await using one = proxy();
  await one.sync({ table: tableFor({ cart: 30080 }, { localhostNodePorts: true }), failed: none });
  expect(network.places).toEqual([]);
  await one.sync({ table: tableFor({ cart: 30080 }), failed: none });
  expect(network.places).toEqual(['127.0.0.1:30080']);
  await one.sync({ table: tableFor({ cart: 30080 }, {}), failed: none });
  expect(network.places).toEqual([]);
  await one.sync({ table: tableFor({ cart: 30080 }), failed: none });
  expect(network.places).toEqual(['127.0.0.1:30080']);
});

test('IPv6 listens on ::1', async () => {
  await using one = proxy(1, 'IPv6');
  const services = [service('shop/cart', { clusterIps: ['fd00:10:96::a'], ports: [{ nodePort: 30080 }] })];
  const slices = [slice('shop/cart', { endpoints: ['fd00:10:244::1'] })];
  const table = tableOf({ services, slices }, tableOptions({ ipFamily: 'IPv6', localhostNodePorts: 'proxy' }));
  await one.sync({ table, failed: none });
  expect(network.places).toEqual(['[::1]:30080']);
});

test('a Service that failed keeps what it had, until it is applied', async () => {
  await using one = proxy();
  await one.sync({ table: tableFor({ cart: 30080 }), failed: none });
  const moved = tableFor({ cart: 30090, cash: 30081 });
  await one.sync({ table: moved, failed: failing('cart') });
  expect(network.places).toEqual(['127.0.0.1:30080', '127.0.0.1:30081']);
  await one.sync({ table: moved, failed: none });
  expect(network.places).toEqual(['127.0.0.1:30081', '127.0.0.1:30090']);
});

test('a new Service that failed is not served', async () => {
  await using one = proxy();
  await one.sync({ table: tableFor({ cart: 30080 }), failed: failing('cart') });
  expect(network.places).toEqual([]);
});

test('two Services exchange their NodePorts', async () => {
  await using one = proxy();
  await one.sync({ table: tableFor({ cart: 30080, cash: 30081 }), failed: none });
  await one.sync({ table: tableFor({ cart: 30081, cash: 30080 }), failed: none });
  expect(network.places).toEqual(['127.0.0.1:30080', '127.0.0.1:30081']);
  expect(metrics.values.get(failures)).toBeUndefined();
});

test('a taken port costs only its own NodePort, gives one warning, and is tried again with growing waits', async () => {
  await using one = proxy();
  network.setTaken('127.0.0.1:30080', true);
  await one.sync({ table: tableFor({ cart: 30080, cash: 30081 }), failed: none });
  expect(network.places).toEqual(['127.0.0.1:30081']);
  expect(metrics.values.get(gauge)).toBe(1);
  expect(metrics.values.get(failures)).toBe(1);
  expect(logger.transitions).toEqual(['warn NodePort on loopback cannot listen, will retry']);
  expect(events).toMatchObject([
    {
      reason: 'FailedToListenOnLoopback',
      type: 'Warning',
      regarding: { kind: 'Service', namespace: 'shop', name: 'cart' },
    },
  ]);
  for (const [wait, attempts] of [
    [499, 1],
    [1, 2],
    [1000, 3],
    [1999, 3],
    [1, 4],
  ] as const) {
    await clock.advance(wait);
    expect(metrics.values.get(failures)).toBe(attempts);
  }
  await one.sync({ table: tableFor({ cart: 30080, cash: 30091 }), failed: none });
  expect(metrics.values.get(failures), 'not tried again for the change of another').toBe(4);
  network.setTaken('127.0.0.1:30080', false);
  await clock.advance(4000);
  expect(network.places).toEqual(['127.0.0.1:30080', '127.0.0.1:30091']);
  expect(metrics.values.get(gauge)).toBe(2);
  expect(logger.transitions.slice(1)).toEqual(['info NodePort on loopback listens after all']);
  expect(events).toHaveLength(1);
  expect(clock.sleeping).toBe(0);
});

test('a Service that is deleted while its port is taken ends the attempts', async () => {
  await using one = proxy();
  network.setTaken('127.0.0.1:30080', true);
  await one.sync({ table: tableFor({ cart: 30080 }), failed: none });
  await one.sync({ table: tableFor({}), failed: none });
  await clock.advance(60_000);
  expect(metrics.values.get(failures)).toBe(1);
  expect(clock.sleeping).toBe(0);
});

test('the limit of listeners is a failure of the NodePorts above it', async () => {
  await using one = proxy(1);
  await one.sync({ table: tableFor({ cart: 30080, cash: 30081 }), failed: none });
  expect(network.places).toEqual(['127.0.0.1:30080']);
  expect(logger.lines.find(({ level }) => level === 'warn')?.fields).toMatchObject({
    error: { message: 'the limit of open files allows 1 NodePorts on loopback' },
  });
});

test('disposing closes the listeners and ends the attempts', async () => {
  const one = proxy();
  network.setTaken('127.0.0.1:30080', true);
  await one.sync({ table: tableFor({ cart: 30080, cash: 30081 }), failed: none });
  await one[Symbol.asyncDispose]();
  expect(network.places).toEqual([]);
  expect(clock.sleeping).toBe(0);
});
