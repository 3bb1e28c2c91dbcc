import { type IpFamily, millis, parseIp, type ServiceKey } from '@switchyard/core';
import type { HttpAnswer } from '@switchyard/core/health';
import { getRequest, ManualClock } from '@switchyard/core/testing';
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
  return { ...state, status, healthClients: () => clients, countConnections: async () => 3, ...more };
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

test.each<readonly [string, string, NodeReply['used']]>([
  [
    'that other endpoints could replace is still chosen',
    '10.244.1.5,shop/cart',
    [{ address: parseIp('10.244.1.5'), service: 'shop/cart' as ServiceKey, policies: ['Cluster', 'Local'] }],
  ],
  ['that is not serving is not chosen', '10.244.2.6,shop/cart', []],
  ['of another Service is not of this one', '10.244.1.5,shop/cart-api', []],
  ['of a Service that is not known is not chosen', '10.244.1.5,shop/none', []],
])('a pod %s', async (_, pod, used) => {
  expect((await nodeAnswer(stateOf(), `pod=${pod}`)).used).toEqual(used);
});

test.each<readonly [string, 'Cluster' | 'Local', readonly [string, string], boolean]>([
  ['from outside alone has its health checks', 'Cluster', ['Cluster', 'Local'], true],
  ['from pods, too, has none: they do not leave', 'Local', ['Local', 'Local'], false],
])('use by policy Local %s', async (_, internal, __, isChecked) => {
  const table = tableOfFamily('IPv4');
  const [key, cart] = [...table.services].find(([, { service }]) => service === 'shop/cart') ?? [];
  if (key === undefined || cart === undefined) throw new Error('no cart');
  const endpoints = { ...cart.endpoints, Cluster: [] };
  const services = new Map([[key, { ...cart, endpoints, policies: { ...cart.policies, internal } }]]);
  const state = stateOf({ tables: () => new Map([['IPv4', { ...table, services }]]) });
  const { used } = await nodeAnswer(state, 'pod=10.244.1.5,shop/cart');
  expect(used).toMatchObject([{ policies: ['Local'] }]);
  expect(used[0]?.checkedBy).toEqual(isChecked ? clients : undefined);
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
  expect((await nodeAnswer(state, 'pod=10.244.1.5,shop/cart')).failed).toEqual(['shop/cart']);
  expect((await nodeAnswer(state, 'pod=10.244.1.9,shop/cart-api')).failed).toEqual([]);
});

test('connections are counted, or it says why not', async () => {
  const asked: unknown[] = [];
  const counting = stateOf({ countConnections: async (addresses, ports) => (asked.push(addresses, ports), 3) });
  const path = '/drain/connections?pod=10.244.1.5,fd00::5&ports=8080,9090';
  expect(JSON.parse((await ask(counting, path)).body)).toEqual({ node: 'n1', connections: 3 });
  expect(asked).toEqual([['10.244.1.5', 'fd00::5'], new Set([8080, 9090])]);
  const failing = stateOf({ countConnections: async () => Promise.reject(new Error('no right')) });
  expect(JSON.parse((await ask(failing, path)).body)).toEqual({ node: 'n1', why: 'no right' });
});

test.each([
  '/drain/node?after=x',
  '/drain/connections?ports=80',
  '/drain/connections?pod=10.244.1&ports=80',
  '/drain/connections?pod=10.244.1.5&ports=0',
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
