import { millis, parseIp, parsePort, systemClock } from '@switchyard/core';
import { anonymousConnection, apiResources, type ObjectClient, type Service } from '@switchyard/core/kubernetes';
import { type ApiServer, startApiServer } from '@switchyard/lab';
import { emptyState, type ScenarioService } from '@switchyard/scenarios';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AddressBook, ObjectWriter } from './object-writer.ts';
import type { NodePair } from './preflight.ts';
import { apiOf } from './open-cluster-environment.ts';
import type { ClusterPlace } from './cluster-connector.ts';
import { realServices, type WantedService } from './real-objects.ts';

const signal = AbortSignal.timeout(30_000);
const real = { addresses: { IPv4: parseIp('192.0.2.1') }, zone: undefined, kernel: '' };
const nodes: NodePair = { node1: { ...real, name: 'a' }, node2: { ...real, name: 'b' } };
const { services } = apiResources;
const clusterIP = parseIp('10.96.0.10');
let server: ApiServer;
let api: ObjectClient;
let book: AddressBook;
let writer: ObjectWriter;

beforeEach(async () => {
  server = await startApiServer();
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  api = apiOf({ connection: anonymousConnection(new URL(url)), clock: systemClock });
  book = new AddressBook(nodes);
  writer = new ObjectWriter({ api, namespace: 'default', book });
});

afterEach(async () => {
  await api[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const cart: ScenarioService = {
  name: 'shop/cart',
  type: 'ClusterIP',
  clusterIP,
  otherClusterIP: undefined,
  ports: [{ name: 'http', port: parsePort(80), protocol: 'TCP', nodePort: undefined }],
  externalTrafficPolicy: 'Cluster',
  internalTrafficPolicy: 'Cluster',
  externalIPs: [],
  loadBalancerIPs: [],
  loadBalancerSourceRanges: [],
  healthCheckNodePort: undefined,
  sessionAffinityTimeoutSeconds: undefined,
  labels: {},
};
const nodePort = (number: number): ScenarioService => ({
  ...cart,
  type: 'NodePort',
  ports: [{ name: 'http', port: parsePort(80), protocol: 'TCP', nodePort: parsePort(number) }],
});
const balanced: ScenarioService = {
  ...nodePort(30_080),
  type: 'LoadBalancer',
  externalTrafficPolicy: 'Local',
  loadBalancerIPs: [{ ip: parseIp('198.51.100.7'), ipMode: undefined }],
  healthCheckNodePort: parsePort(32_080),
};

function wanted(
  services: readonly ScenarioService[],
  balancing: ClusterPlace['balancing'] = 'runner',
): readonly WantedService[] {
  const senders = { pod: { addresses: {} } };
  const caller = { namespace: 'default' };
  const how = { book, nodes, caller, run: 'r', senders, balancing } as unknown as ClusterPlace; // of Services
  const scenario = { ipFamily: 'IPv4', isDualStack: false } as never; // the only fields used
  const state = { ...emptyState, services: new Map(services.map((one) => [one.name, one])) };
  return realServices({ scenario, state }, how);
}

const put = (...services: readonly ScenarioService[]): Promise<void> => writer.writeServices(wanted(services), signal);
const stored = (): Promise<Service> => api.get(services, { name: 'cart-shop' }, signal);

test('the API server chooses the cluster IP, and the book knows it afterwards', async () => {
  await put(cart);
  const { spec } = await stored();
  expect(spec?.clusterIP).not.toBe('');
  expect(book.destination(clusterIP, 80, 'TCP')).toEqual({ address: spec?.clusterIP, port: 80 });
});

test('a Service that comes back has its address again; one that moves has another', async () => {
  await put(cart);
  const first = book.clusterIps.get(clusterIP);
  await put();
  await put(cart);
  expect(book.clusterIps.get(clusterIP)).toBe(first);
  const other = parseIp('10.96.0.11');
  await put({ ...cart, clusterIP: other });
  expect(book.clusterIps.get(other)).not.toBe(first);
  expect((await stored()).spec?.clusterIP).toBe(book.clusterIps.get(other));
});

test('a NodePort is the own number where it is free, and another one where it is not', async () => {
  const ports = [{ port: 80, nodePort: 30_080 }];
  await api.create(services, { metadata: { name: 'other' }, spec: { type: 'NodePort', ports } }, signal);
  await put(nodePort(30_081));
  expect(book.nodePorts.get(`${30_081}/TCP`)).toBe(30_081);
  await put(nodePort(30_080));
  const number = book.nodePorts.get(`${30_080}/TCP`);
  expect(number).not.toBe(30_080);
  expect((await stored()).spec?.ports?.[0]?.nodePort).toBe(number);
});

test('the status has the addresses of the load balancer, the class keeps controllers away, and the health check port is known', async () => {
  await put(balanced);
  const { spec, status } = await stored();
  expect(spec?.loadBalancerClass).toBe('switchyard.dev/conformance');
  expect(status?.loadBalancer?.ingress).toEqual([{ ip: '198.51.100.7', ipMode: 'VIP' }]);
  expect(book.healthPorts.get(32_080)).toBe(spec?.healthCheckNodePort);
  await put({ ...balanced, loadBalancerIPs: [] });
  expect((await stored()).status?.loadBalancer?.ingress ?? []).toEqual([]);
  await put(cart);
  expect((await stored()).spec).toMatchObject({ type: 'ClusterIP', clusterIP: spec?.clusterIP });
});

test('the addresses of a controller stand for the planned ones, in a Service without a class', async () => {
  const writing = writer.writeServices(wanted([balanced], 'controller'), signal);
  const found = async (): Promise<Service | undefined> => api.find(services, { name: 'cart-shop' }, signal);
  while ((await found()) === undefined) await systemClock.sleep(millis(5), signal);
  const body = { status: { loadBalancer: { ingress: [{ ip: '203.0.113.7' }] } } };
  await api.patch(services, { name: 'cart-shop', subresource: 'status' }, { kind: 'merge', body }, signal);
  await writing;
  expect((await stored()).spec?.loadBalancerClass).toBeUndefined();
  const planned = parseIp('198.51.100.7');
  expect(book.destination(planned, 80, 'TCP')).toEqual({ address: '203.0.113.7', port: 80 });
  book.clear();
  expect(book.destination(planned, 80, 'TCP').address).toBe(planned);
});

test('unchanged objects are not written again, and changes of others are overwritten', async () => {
  await put(cart);
  const { metadata } = await stored();
  await put(cart);
  expect((await stored()).metadata?.resourceVersion).toBe(metadata?.resourceVersion);
  const body = { metadata: { annotations: { by: 'a controller' } } };
  await api.patch(services, { name: 'cart-shop' }, { kind: 'merge', body }, signal);
  await put({ ...cart, sessionAffinityTimeoutSeconds: 60 });
  expect((await stored()).spec?.sessionAffinity).toBe('ClientIP');
});

test('of several Services one is refused: the others are there, and the next put removes them', async () => {
  const other = { ...cart, name: 'shop/other', clusterIP: parseIp('10.96.0.12') };
  const bad = { ...cart, name: 'shop/Not_A_Name' };
  await expect(put(bad, cart, { ...other, loadBalancerIPs: [] })).rejects.toThrow(/422/);
  expect((await api.list(services, {}, signal)).items.map(({ metadata }) => metadata?.name)).toContain('other-shop');
  await put();
  const left = await api.list(services, {}, signal);
  expect(left.items.map(({ metadata }) => metadata?.name).filter((name) => name?.endsWith('-shop'))).toEqual([]);
});

test('a refusal says what was asked, what came back and what to do', async () => {
  server.access.addUser({ name: 'nobody', token: 't', rules: [] });
  const connection = { ...anonymousConnection(new URL((await server.listen({ host: '127.0.0.1', port: 0 })).url)) };
  const credentials = { authorization: () => Promise.resolve('Bearer t'), forget: () => undefined };
  await using limited = apiOf({ connection: { ...connection, credentials }, clock: systemClock });
  await expect(limited.list(services, {}, signal)).rejects.toThrow(
    /GET .*services: the API server answered 403: .*cannot list.*; deploy\/conformance\/rbac\.yaml has all the rights/,
  );
});
