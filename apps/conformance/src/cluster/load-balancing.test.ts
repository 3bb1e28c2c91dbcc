import { parseIp, systemClock } from '@switchyard/core';
import { anonymousConnection, apiResources, type ObjectClient } from '@switchyard/core/kubernetes';
import { type ApiServer, startApiServer } from '@switchyard/lab';
import { allScenarios, type Scenario } from '@switchyard/scenarios';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  assignedAddresses,
  balancedFlowObstacle,
  balancerObstacle,
  findController,
  balancingObstacle,
  pairAddresses,
} from './load-balancing.ts';
import { apiOf } from './open-cluster-environment.ts';

const signal = AbortSignal.timeout(30_000);
let server: ApiServer;
let api: ObjectClient;

beforeEach(async () => {
  server = await startApiServer();
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  api = apiOf({ connection: anonymousConnection(new URL(url)), clock: systemClock });
});

afterEach(async () => {
  await api[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

test('the addresses of a Service are those that a controller assigns a moment later', async () => {
  const ref = { namespace: 'default', name: 'cart' };
  const spec = { type: 'LoadBalancer', ports: [{ port: 80 }] };
  await api.create(apiResources.services, { metadata: ref, spec }, signal);
  const assigned = assignedAddresses(api, ref, signal);
  const body = { status: { loadBalancer: { ingress: [{ hostname: 'lb.example' }, { ip: '203.0.113.7' }] } } };
  await api.patch(apiResources.services, { ...ref, subresource: 'status' }, { kind: 'merge', body }, signal);
  expect(await assigned).toEqual(['203.0.113.7']);
});

test('planned addresses have a partner of their family', () => {
  const [v4, v6] = [parseIp('203.0.113.7'), parseIp('2001:db8::7')];
  expect(pairAddresses([parseIp('198.51.100.7'), parseIp('2001:db8:51::7')], [v6, v4])).toEqual([
    ['198.51.100.7', v4],
    ['2001:db8:51::7', v6],
  ]);
  expect(() => pairAddresses([parseIp('2001:db8:51::7')], [v4])).toThrow(/assigned no IPv6 address: 203.0.113.7/);
});

function named(id: string): Scenario {
  const scenario = allScenarios().find((one) => one.id === id && one.ipFamily === 'IPv4');
  if (scenario === undefined) throw new Error(`no scenario ${id}`);
  return scenario;
}

test.each([
  ['cluster-ip', 'nowhere', undefined],
  ['load-balancer-cluster', 'runner', undefined],
  ['load-balancer-cluster', 'controller', undefined],
  ['load-balancer-cluster', 'nowhere', /no controller .* within 20 s/],
  ['load-balancer-ip-mode', 'controller', /chooses the ipMode/],
  ['load-balancer-status', 'controller', /chooses which addresses/],
  ['external-ip-is-load-balancer-ip', 'controller', /chooses which addresses/],
  ['load-balancer-ip-mode', 'runner', undefined],
] as const)('%s with addresses from the %s', (id, balancing, expected) => {
  const obstacle = balancingObstacle(named(id), balancing);
  if (expected === undefined) expect(obstacle).toBeUndefined();
  else expect(obstacle).toMatch(expected);
});

test('requests go through a load balancer of a controller, from outside of the cluster', () => {
  expect(balancerObstacle('controller', false)).toBeUndefined();
  expect(balancerObstacle('proxied', false)).toBeUndefined();
  expect(balancerObstacle('controller', true)).toMatch(/the runner is inside$/);
  expect(balancerObstacle('runner', false)).toMatch(/^only with --load-balancer/);
  expect(balancerObstacle('nowhere', false)).toMatch(/^no controller of this cluster gave/);
});

test.each([
  ['Proxy', 'proxied', /ipMode Proxy/],
  ['VIP', 'controller', undefined],
] as const)('a controller that assigns addresses with ipMode %s is %s', async (ipMode, expected, obstacle) => {
  const found = findController({ api, namespace: 'default', token: '' }, signal);
  const ref = { namespace: 'default', name: 'balanced' };
  const body = { status: { loadBalancer: { ingress: [{ ip: '203.0.113.7', ipMode }] } } };
  await vi.waitFor(() =>
    api.patch(apiResources.services, { ...ref, subresource: 'status' }, { kind: 'merge', body }, signal),
  );
  const balancing = await found;
  expect(balancing).toBe(expected);
  const { services } = named('load-balancer-cluster');
  const ip = services[0]!.loadBalancerIPs[0]!.ip;
  const reason = balancedFlowObstacle(ip, services, balancing);
  if (obstacle === undefined) expect(reason).toBeUndefined();
  else expect(reason).toMatch(obstacle);
});
