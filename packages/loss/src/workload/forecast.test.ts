import { millis, seconds } from '@switchyard/core';
import { expect, test } from 'vitest';
import { knownChecks } from '../known-checks.ts';
import { type ExampleChanges, exampleNode, exampleObjects } from '../testing/example-objects.ts';
import { forecast, type ForecastConditions, lostRequests, type PathForecast } from './forecast.ts';

const conditions: ForecastConditions = {
  proxy: 'kube-proxy',
  proxyDelay: undefined,
  gate: 'absent',
  drain: seconds(0),
  checkOf: () => ({ name: 'cloud-provider-kind', ...knownChecks['cloud-provider-kind'] }),
};
const clusterIp = { type: 'ClusterIP', externalTrafficPolicy: undefined };

function paths(changes: ExampleChanges = {}, more: Partial<ForecastConditions> = {}): readonly PathForecast[] {
  const { deployments, ...example } = exampleObjects(changes);
  const objects = { ...example, deployment: deployments[0]!, services: [example.service] };
  return forecast(objects, { ...conditions, ...more }).paths;
}

function inside(changes: ExampleChanges, more: Partial<ForecastConditions> = {}): PathForecast {
  const anywhere = { affinity: undefined };
  return paths({ pod: anywhere, ...changes, service: { ...clusterIp, ...changes.service } }, more)[0]!;
}

const three = { replicas: 3, strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } };
const sleep = (duration: number): object => ({ lifecycle: { preStop: { sleep: { seconds: duration } } } });

test.each<[what: string, service: object, expected: readonly string[]]>([
  ['a cluster IP', clusterIp, ['inside clusterIp Cluster -']],
  [
    'a NodePort',
    { type: 'NodePort', externalTrafficPolicy: 'Cluster' },
    ['inside clusterIp Cluster -', 'outside nodePort Cluster -'],
  ],
  [
    'a load balancer that follows pods',
    {},
    ['inside clusterIp Cluster -', 'outside loadBalancer Local cloud-provider-kind'],
  ],
  [
    'a load balancer that does not',
    { externalTrafficPolicy: 'Cluster' },
    ['inside clusterIp Cluster -', 'outside loadBalancer Cluster -'],
  ],
  ['no proxy: it is headless', { ...clusterIp, clusterIP: 'None' }, []],
])('clients reach pods through %s', (_, service, expected) => {
  const found = paths({ service });
  expect(found.map(({ clients, by, policy, check }) => `${clients} ${by} ${policy} ${check?.name ?? '-'}`)).toEqual(
    expected,
  );
});

test('inside, each pod of three is lost from its end until the slowest node knows', () => {
  // Three pods, each a quarter of the traffic (a new one is ready) for 10 ms to 1.15 s.
  const { best, expected, worst, byCause } = inside({ deployment: three });
  expect(best).toBeLessThanOrEqual(10);
  expect(worst).toBeCloseTo(3 * 0.25 * 1150, -2);
  expect(expected).toBeGreaterThan(best);
  expect(expected).toBeLessThan(worst);
  expect(Object.keys(byCause)).toEqual(['appGone']);
});

test.each<[what: string, changes: ExampleChanges, more: Partial<ForecastConditions>, worst: number]>([
  ['a sleep that outlasts the slowest node', { deployment: three, container: sleep(2) }, {}, 0],
  ['an application that does', { deployment: three }, { drain: seconds(2) }, 0],
  ['no replicas', { deployment: { replicas: 0 } }, {}, 0],
  [
    'no surge: from the end of the only pod until the next one is ready, at most 2 s and what the proxy needs',
    { deployment: { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } } },
    {},
    2120,
  ],
  [
    'no surge, and a sleep that outlasts the start of the next pod',
    { deployment: { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } }, container: sleep(3) },
    {},
    0,
  ],
])('inside, at worst, with %s', (_, changes, more, worst) => {
  expect(inside(changes, more).worst).toBeCloseTo(worst, -2);
});

test('a client that sticks to an endpoint may lose as much as that endpoint', () => {
  const one = inside({ deployment: three });
  const sticky = inside({ deployment: three, service: { sessionAffinity: 'ClientIP' } });
  expect(one.worst).toBeGreaterThan(0);
  expect(sticky.worst).toBe(one.worst * 4);
  expect(sticky.best).toBe(0);
});

test('where clients use the pods of one node only, the loss is between none and all until the end', () => {
  const local = inside({ deployment: three, service: { internalTrafficPolicy: 'Local' } });
  expect(local).toMatchObject({ best: 0, expected: undefined });
  expect(local.worst).toBeGreaterThan(1000);
  expect(local.worst).toBe(local.duration);
});

test('an unknown time after SIGTERM makes the least loss smaller, and not the worst', () => {
  const known = inside({ deployment: three }, { proxyDelay: seconds(5) });
  const unknown = inside({ deployment: three }, { proxyDelay: seconds(5), drain: undefined });
  expect(unknown.best).toBe(0);
  expect(unknown.worst).toBe(known.worst);
  expect(unknown.serves).toEqual({ shortest: 0, longest: seconds(30) });
});

test.each<[gate: ForecastConditions['gate'], limit: number, isLost: boolean]>([
  ['answers', 20, false],
  ['answers', 10, true],
  ['expires', 20, false],
  ['expires', 10, true],
  ['absent', 20, true],
])(
  'a hook at a drain gate that %s, for up to %d s: lost behind a load balancer that needs 16 s: %s',
  (gate, limit, isLost) => {
    const command = ['sh', '-c', `wget "http://gate:10247/drain?pod=$POD_IP&seconds=${limit}"`];
    const container = { lifecycle: { preStop: { exec: { command } } } };
    const outside = paths({ container }, { gate })[1]!;
    expect(outside.worst > 0).toBe(isLost);
  },
);

test('outside, the load balancer decides', () => {
  const [, outside] = paths({ container: sleep(5) });
  expect(outside).toMatchObject({ mustServe: 16_150, byCause: { appGone: expect.any(Number) } });
  const nodes = [exampleNode('a'), exampleNode('b')];
  expect(paths({ container: sleep(17), nodes })[1]).toMatchObject({ best: 0, expected: 0, worst: 0 });
});

test('outside, pods that share nodes are lost from none, on one node, to as much as each on its own', () => {
  const anywhere = { affinity: undefined };
  const nodes = [exampleNode('a'), exampleNode('b')];
  const six = { ...three, replicas: 6 };
  const [, shared] = paths({ deployment: six, pod: anywhere, nodes, container: sleep(5) });
  expect(shared).toMatchObject({ best: 0, expected: 0 });
  // Each of six nodes fails for up to 11 s before the load balancer has left it, with at least a seventh of the traffic.
  expect(shared?.worst).toBeGreaterThan(11_000 / 7);
  expect(shared?.worst).toBeLessThan(6 * 11_150);
  expect(paths({ deployment: six, pod: anywhere, nodes, container: sleep(17) })[1]?.worst).toBe(0);
});

test.each([
  [0, 0, 0, { least: 0, expected: 0, most: 0 }],
  [1000, 1500, 2000, { least: 11, expected: 30, most: 53 }],
  [10, 20, 40, { least: 0, expected: 0, most: 3 }],
])('%d to %d to %d ms of loss, as requests at 20 a second', (best, expected, worst, requests) => {
  const times = { best: millis(best), expected: millis(expected), worst: millis(worst) };
  expect(lostRequests(times, 20)).toEqual(requests);
});
