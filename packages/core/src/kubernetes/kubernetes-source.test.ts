import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodeName } from '../model/records/keys.ts';
import { ClusterState } from '../model/state/cluster-state.ts';
import type { ClusterEvent } from '../model/state/cluster-event.ts';
import { MemoryLogger } from '../testing/memory-logger.ts';
import { RecordingClock } from '../testing/recording-clock.ts';
import { type Exchange, ScriptedApiServer, serveWatchList } from '../testing/scripted-api-server.ts';
import { seconds } from '../base/time.ts';
import { defaultTls, fixedCredentials } from './api-server-connection.ts';
import { KubernetesSource } from './kubernetes-source.ts';

const paths = {
  Service: '/api/v1/services',
  EndpointSlice: '/apis/discovery.k8s.io/v1/endpointslices',
  Node: '/api/v1/nodes',
  ServiceCIDR: '/apis/networking.k8s.io/v1/servicecidrs',
} as const;

let server: ScriptedApiServer;
let log: MemoryLogger;
let clock: RecordingClock;
let stop: AbortController;
let seen: ClusterEvent[];
let running: Promise<unknown>;

beforeEach(async () => {
  server = await ScriptedApiServer.listen();
  log = new MemoryLogger();
  clock = new RecordingClock();
  stop = new AbortController();
  seen = [];
  running = Promise.resolve();
});

afterEach(async () => {
  stop.abort();
  await running;
  await server[Symbol.asyncDispose]();
});

function start(): ClusterState {
  const state = new ClusterState({ nodeName: nodeName('n1') });
  const source = new KubernetesSource({
    connection: { url: server.url, tls: defaultTls, credentials: fixedCredentials('Bearer t') },
    nodes: { kind: 'one', name: nodeName('n1') },
    clock,
    random: () => 0.5,
    log,
    userAgent: 'switchyard-test/1',
    timings: { initialInactivity: seconds(90), connect: seconds(90) },
  });
  const pull = async (): Promise<void> => {
    for await (const batch of source.batches(stop.signal)) {
      seen.push(...batch);
      state.apply(batch);
    }
  };
  running = pull();
  return state;
}

const until = (condition: () => boolean): Promise<void> => expect.poll(condition, { interval: 1 }).toBe(true);

test('nothing is in sync before each of the four resources was listed', async () => {
  const state = start();
  serveWatchList(await server.next(paths.Service), '5', [
    { metadata: { namespace: 'shop', name: 'cart' }, spec: { clusterIP: '10.96.0.10' } },
  ]);
  serveWatchList(await server.next(paths.EndpointSlice), '6');
  serveWatchList(await server.next(paths.ServiceCIDR), '7');
  await until(() => state.missingResources.length === 1);
  expect(state.missingResources).toEqual(['Node']);
  serveWatchList(await server.next(paths.Node), '8', [{ metadata: { name: 'n1' } }]);
  await until(() => state.isInSync);
  expect(state.services.has('shop/cart' as never)).toBe(true);
  expect(seen.every((event) => event.kind === 'replace')).toBe(true);
});

test('events of all streams arrive, those of one write together', async () => {
  start();
  const watches = new Map<string, Exchange>();
  for (const path of Object.values(paths)) watches.set(path, serveWatchList(await server.next(path), '5'));
  await until(() => seen.length === 4);
  const label = { 'kubernetes.io/service-name': 'cart' };
  watches
    .get(paths.EndpointSlice)
    ?.send(
      { type: 'ADDED', object: { metadata: { namespace: 'shop', name: 'a', labels: label }, addressType: 'IPv4' } },
      { type: 'DELETED', object: { metadata: { namespace: 'shop', name: 'b', labels: label }, addressType: 'IPv4' } },
    );
  await until(() => seen.length === 6);
  expect(seen.slice(4)).toMatchObject([
    { kind: 'upsert', resource: 'EndpointSlice', item: { key: 'shop/a' } },
    { kind: 'delete', resource: 'EndpointSlice', name: 'shop/b' },
  ]);
});

test.each([404, 403])(
  'ServiceCIDRs that are answered with %i count as empty, and are requested again',
  async (status) => {
    const state = start();
    for (const path of [paths.Service, paths.EndpointSlice, paths.Node]) serveWatchList(await server.next(path), '5');
    (await server.next(paths.ServiceCIDR)).answer(status, { kind: 'Status', message: 'no' });
    await until(() => state.isInSync);
    (await server.next(paths.ServiceCIDR)).answer(status, { kind: 'Status', message: 'no' });
    serveWatchList(await server.next(paths.ServiceCIDR), '9', [
      { metadata: { name: 'kubernetes' }, spec: { cidrs: ['10.96.0.0/12'] } },
    ]);
    await until(() => state.serviceCidrs.length === 1);
    expect(log.transitions).toEqual(['info resource is not available; treated as empty']);
  },
);

test.each([
  ['Services', paths.Service],
  ['EndpointSlices', paths.EndpointSlice],
  ['the Node', paths.Node],
])('a 404 or 403 for %s is an outage, not an empty cluster', async (_, path) => {
  start();
  (await server.next(path)).answer(404, 'no');
  (await server.next(path)).answer(403, 'no');
  await server.next(path);
  expect(seen).toEqual([]);
});

test('credentials and user agent are sent', async () => {
  start();
  const { headers } = await server.next(paths.Node);
  expect(headers).toMatchObject({
    authorization: 'Bearer t',
    'user-agent': 'switchyard-test/1',
  });
});

test('an unusable part is logged once, however often the object comes', async () => {
  start();
  const object = { metadata: { namespace: 'shop', name: 'cart' }, spec: { externalIPs: ['nowhere'] } };
  const watch = serveWatchList(await server.next(paths.Service), '5', [object]);
  watch.send({ type: 'MODIFIED', object }, { type: 'MODIFIED', object });
  await until(() => seen.length === 2);
  expect(log.transitions).toEqual(['warn part of an object is not usable and left out']);
  expect(log.lines.find(({ level }) => level === 'warn')?.fields).toMatchObject({
    name: 'shop/cart',
    path: 'spec.externalIPs[0]',
    value: '"nowhere"',
  });
});

test('fact 12: an FQDN slice is logged, once, and ignored', async () => {
  start();
  const metadata = { namespace: 'shop', name: 'x', labels: { 'kubernetes.io/service-name': 'cart' } };
  const object = { metadata, addressType: 'FQDN', endpoints: [{ addresses: ['cart.example'] }] };
  serveWatchList(await server.next(paths.EndpointSlice), '5', [object]).send({ type: 'MODIFIED', object });
  await until(() => seen.length === 2);
  expect(seen).toEqual([
    { kind: 'replace', resource: 'EndpointSlice', resourceVersion: 5, items: [] },
    { kind: 'delete', resource: 'EndpointSlice', resourceVersion: undefined, name: 'shop/x' },
  ]);
  expect(log.transitions).toEqual(['warn object is not usable and left out']);
  expect(log.lines.find(({ level }) => level === 'warn')?.fields).toMatchObject({
    name: 'shop/x',
    reason: 'addressType',
  });
});

test('an API server that is away and comes back delivers nothing but the news', async () => {
  const state = start();
  const watches: Exchange[] = [];
  for (const path of Object.values(paths))
    watches.push(serveWatchList(await server.next(path), '5', [{ metadata: { namespace: 's', name: 'n1' } }]));
  await until(() => state.isInSync);
  const { port } = server;
  await server[Symbol.asyncDispose]();
  await until(() => log.transitions.length === 4);
  server = await ScriptedApiServer.listen({ port });
  for (const path of Object.values(paths)) {
    const resumed = await server.next(path);
    expect(resumed.query.get('resourceVersion')).toBe('5');
    resumed.stream();
  }
  await until(() => log.transitions.length === 8);
  expect(seen).toHaveLength(4);
  expect(new Set(log.transitions)).toEqual(
    new Set(['warn lost the API server; forwarding stays as it is', 'info the API server is back']),
  );
});

test('aborting ends the loop without an error and closes every connection', async () => {
  start();
  const watches = await Promise.all(Object.values(paths).map((path) => server.next(path)));
  for (const watch of watches) watch.stream();
  stop.abort();
  expect(await running).toBeUndefined();
  await Promise.all(watches.map((watch) => watch.closed));
});

test('leaving the loop stops the reflectors', async () => {
  const source = new KubernetesSource({
    connection: { url: server.url, tls: defaultTls, credentials: fixedCredentials(undefined) },
    nodes: { kind: 'all' },
    clock,
    random: () => 0.5,
    log,
  });
  const all = Object.values(paths).map(async (path) => serveWatchList(await server.next(path), '5'));
  for await (const batch of source.batches(stop.signal)) {
    expect(batch.length).toBeGreaterThan(0);
    break;
  }
  const watches = await Promise.all(all);
  await Promise.all(watches.map((watch) => watch.closed));
  expect(server.requests.find(({ path }) => path === paths.Node)?.query.has('fieldSelector')).toBe(false);
});
