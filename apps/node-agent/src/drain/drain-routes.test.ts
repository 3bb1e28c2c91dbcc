import { HostError, type IpFamily, millis } from '@switchyard/core';
import type { HttpAnswer } from '@switchyard/core/health';
import {
  type EndpointSpec,
  getRequest,
  ManualClock,
  node,
  service,
  type ServiceSpec,
  slice,
  tableOf,
  tableOptions,
} from '@switchyard/core/testing';
import { type NodeReply } from '@switchyard/drain-gate';
import { expect, test } from 'vitest';
import { debugState, tableOfFamily } from '../http/testing/debug-bench.ts';
import { drainRoutes, type DrainState } from './drain-routes.ts';

const { signal } = new AbortController();
const clients = [{ address: '172.18.0.5', failures: 1 }];

interface Bench extends Partial<DrainState> {
  readonly versions?: readonly number[];
}

function stateOf({ versions = [105, 105], ...more }: Bench = {}): DrainState {
  const state = debugState({
    tables: new Map<IpFamily, ReturnType<typeof tableOfFamily>>([['IPv4', tableOfFamily('IPv4')]]),
  });
  const status = () => {
    const { families, ...rest } = state.status();
    const changed = [...families].map(
      ([ipFamily, one], index) => [ipFamily, { ...one, slicesVersion: versions[index] ?? 0 }] as const,
    );
    return { ...rest, families: new Map(changed) };
  };
  return {
    ...state,
    status,
    healthClients: () => clients,
    countConnections: async () => ({ open: { TCP: 3 } }),
    ...more,
  };
}

async function ask(state: DrainState, target: string): Promise<HttpAnswer> {
  const [path = ''] = target.split('?');
  const route = drainRoutes(state).find((one) => one.path === path);
  return (await route?.answer(getRequest(target), signal)) as HttpAnswer;
}

const nodeAnswer = async (state: DrainState, query: string): Promise<NodeReply> =>
  JSON.parse((await ask(state, `/drain/node?${query}`)).body) as NodeReply;

test('the version of a node is that of the family that is behind', async () => {
  expect(await nodeAnswer(stateOf({ versions: [107, 105] }), 'after=0')).toEqual({
    node: 'n1',
    slicesVersion: 105,
    failed: [],
    used: [],
  });
});

test('it waits for the version, and looks again after each apply', async () => {
  const clock = new ManualClock();
  const versions = [104, 104];
  let notify = (): void => undefined;
  const state = stateOf({ versions, clock, onApplied: (listener) => ((notify = listener), () => undefined) });
  const answer = nodeAnswer(state, 'after=105&seconds=10');
  await clock.advance(10);
  versions[0] = 105;
  notify();
  await clock.advance(10);
  versions[1] = 105;
  notify();
  expect((await answer).slicesVersion).toBe(105);
});

test('after its time it answers with what it has', async () => {
  const clock = new ManualClock();
  const answer = nodeAnswer(stateOf({ clock }), 'after=106&seconds=2.5');
  await clock.advance(2500);
  expect((await answer).slicesVersion).toBe(105);
});

/** A state whose Service shop/cart has these endpoints, of node n1 and n2. */
function cartState(endpoints: readonly EndpointSpec[], spec: ServiceSpec = {}): DrainState {
  const ports = [{ name: 'http', port: 80 }];
  const cluster = {
    services: [
      service('shop/cart', {
        external: 'Local',
        healthCheckNodePort: 30_001,
        loadBalancerIps: ['198.51.100.7'],
        ports,
        ...spec,
      }),
    ],
    slices: [slice('shop/cart', { ports: [{ name: 'http', port: 8080 }], endpoints })],
    nodes: [node('n1')],
  };
  const table = tableOf(cluster, tableOptions({ ipFamily: 'IPv4' }));
  return stateOf({ tables: () => new Map([['IPv4', table]]) });
}

const own = { ip: '10.244.1.5', node: 'n1' };
const other = { ip: '10.244.2.5', node: 'n2' };
const used = (policies: readonly string[]): object => ({ address: own.ip, service: 'shop/cart', policies });

test.each<readonly [string, readonly EndpointSpec[], ServiceSpec, readonly object[]]>([
  ['that is ready does not end', [own, other], {}, []],
  [
    'that ends is not chosen beside a ready one on the node',
    [{ ...own, terminating: true }, { ip: '10.244.1.6', node: 'n1' }, other],
    {},
    [],
  ],
  ['that ends, and serves no more, is not chosen', [{ ...own, terminating: true, serving: false }], {}, []],
  ['that ends as the last one is chosen', [{ ...own, terminating: true }], {}, [used(['Cluster', 'Local'])]],
  [
    'that ends as the last one of the node is chosen for load balancers, who have checked it',
    [{ ...own, terminating: true }, other],
    {},
    [{ ...used(['Local']), checkedBy: clients }],
  ],
  [
    'that pods of the node are led to does not wait for load balancers alone',
    [{ ...own, terminating: true }, other],
    { internal: 'Local' },
    [used(['Local'])],
  ],
  [
    'that is published although it is not ready stays chosen',
    [{ ...own, ready: true, terminating: true }, other],
    {},
    [used(['Cluster', 'Local'])],
  ],
])('a pod %s', async (_, endpoints, spec, expected) => {
  expect((await nodeAnswer(cartState(endpoints, spec), 'service=shop/cart')).used).toEqual(expected);
  expect((await nodeAnswer(cartState(endpoints, spec), 'service=shop/none')).used).toEqual([]);
});

/** Rules of an observed proxy that choose these addresses under policy Cluster, and none under Local. */
function choicesOf(chosen: () => readonly string[]): Pick<DrainState, 'openChoices'> {
  const read = () => ({
    isChosen: (policy: string, { address }: { readonly address: string }) =>
      policy === 'Cluster' ? chosen().includes(address) : undefined,
  });
  return { openChoices: () => Object.assign(read, { [Symbol.dispose]: () => undefined }) };
}

const ending = cartState([{ ...own, terminating: true }, other, { ip: '10.244.2.6', node: 'n2' }], {
  external: 'Cluster',
});
const late = (address: string): object => ({ address, service: 'shop/cart', policies: ['Cluster'], isLate: true });

test('an observer answers when the rules of its proxy are as they should be', async () => {
  const clock = new ManualClock();
  let chosen = [own.ip, other.ip];
  const state = { ...ending, clock, ...choicesOf(() => chosen) };
  const answer = nodeAnswer(state, 'after=105&service=shop/cart&seconds=10');
  await clock.advance(1000);
  chosen = [other.ip, '10.244.2.6'];
  await clock.advance(25);
  expect((await answer).used).toEqual([]);
});

test('an observer names what its proxy has not written in time, and does not wait for what comes later', async () => {
  const clock = new ManualClock();
  let chosen = [own.ip, other.ip];
  const state = { ...ending, clock, ...choicesOf(() => chosen) };
  const answer = nodeAnswer(state, 'after=105&service=shop/cart&seconds=10');
  await clock.advance(10_000);
  expect((await answer).used).toEqual([late(own.ip), late('10.244.2.6')]);
  const next = nodeAnswer(state, 'after=105&service=shop/cart&seconds=10');
  await clock.advance(25);
  chosen = ['10.244.2.6'];
  await clock.advance(25);
  expect((await next).used).toEqual([late(other.ip)]);
});

test('an observer that cannot read the rules of its proxy says why', async () => {
  const openChoices = (): never => {
    throw new HostError('proxy.rules', 'none are in nftables');
  };
  const answer = await ask({ ...ending, openChoices }, '/drain/node?service=shop/cart');
  expect(answer).toMatchObject({ status: 503, body: 'none are in nftables\n' });
});

test('an asked Service whose last apply failed is named', async () => {
  const failure = { text: 'x', since: millis(0) };
  const base = stateOf();
  const keys = [...(base.tables().get('IPv4')?.services.keys() ?? [])];
  const key = keys.find((one) => one.startsWith('shop/cart:'));
  const families = new Map(
    [...base.status().families].map(([ipFamily, one]) => [
      ipFamily,
      { ...one, failedServices: new Map(key === undefined ? [] : [[key, failure]]) },
    ]),
  );
  const state = { ...base, status: () => ({ ...base.status(), families }) };
  expect((await nodeAnswer(state, 'service=shop/cart')).failed).toEqual(['shop/cart']);
  expect((await nodeAnswer(state, 'service=shop/cart-api')).failed).toEqual([]);
});

test('connections are counted, or it says why not', async () => {
  const asked: unknown[] = [];
  const reply = { open: { TCP: 3 }, why: 'the kernel tracks no connections on this node' };
  const counting = stateOf({ countConnections: async (pod) => (asked.push(pod), reply) });
  const path = '/drain/connections?pod=10.244.1.5,fd00::5&tcp=8080,9090&udp=53';
  expect(JSON.parse((await ask(counting, path)).body)).toEqual({ node: 'n1', ...reply });
  const ports = new Map([
    ['TCP', new Set([8080, 9090])],
    ['UDP', new Set([53])],
  ]);
  expect(asked).toEqual([{ addresses: ['10.244.1.5', 'fd00::5'], ports }]);
});

test.each([
  '/drain/node?after=x',
  '/drain/connections?tcp=80',
  '/drain/connections?pod=10.244.1&tcp=80',
  '/drain/connections?pod=10.244.1.5&udp=0',
  '/drain/connections?pod=10.244.1.5&ports=80',
])('%s is refused', async (target) => {
  expect((await ask(stateOf(), target)).status).toBe(400);
});

test('only so many wait at a time', async () => {
  const clock = new ManualClock();
  const state = stateOf({ clock });
  const [route] = drainRoutes(state);
  const waiting = Array.from({ length: 32 }, () =>
    route?.answer(getRequest('/drain/node?after=106&seconds=1'), signal),
  );
  expect(await route?.answer(getRequest('/drain/node?after=106&seconds=1'), signal)).toMatchObject({ status: 429 });
  await clock.advance(1000);
  expect(await Promise.all(waiting)).toHaveLength(32);
  expect(await route?.answer(getRequest('/drain/node'), signal)).toMatchObject({ status: 200 });
});
