import { HostError, millis, parseIp } from '@switchyard/core';
import { expect, test } from 'vitest';
import type { UnansweredFlow } from './kernel/unanswered-flows.ts';
import { LossReader, type LossSources } from './loss-reader.ts';
import { nodeNetns, placedDrop, tracked } from './testing/placed-drop.ts';
import { serviceView } from './testing/shop.ts';

const { signal } = new AbortController();

/** From 10.244.9.9 to shop/cart, translated to an endpoint that it does not have. */
function flow(id: number, spec: { readonly endpoint?: string; readonly address?: string } = {}): UnansweredFlow {
  return {
    id,
    client: parseIp('10.244.9.9'),
    clientPort: 40_000 + id,
    address: parseIp(spec.address ?? '10.96.0.10'),
    port: 80,
    endpoint: parseIp(spec.endpoint ?? '10.244.1.99'),
    endpointPort: 8080,
  };
}

/** Losses of readings a second apart, each with its list of flows; the first list is of the start. */
async function lossesOf(
  lists: readonly (readonly UnansweredFlow[])[],
  {
    proxyLag = 3200,
    tableAge = 2000,
    ...sources
  }: Partial<LossSources> & { readonly proxyLag?: number; readonly tableAge?: number } = {},
) {
  let now = 0;
  const reader = new LossReader({
    netns: nodeNetns,
    counter: undefined,
    readCounters: undefined,
    readFile: () => undefined,
    monotonic: () => millis(now),
    unanswered: () => lists[now / 1000] ?? [],
    ...sources,
  });
  const view = serviceView({ proxyLag: millis(proxyLag), tableAges: new Map([['IPv4', millis(tableAge)]]) });
  await reader.start(view, signal);
  const found: number[] = [];
  const causes = new Set<string>();
  for (now = 1000; now < 1000 * lists.length; now += 1000) {
    const { losses } = await reader.read(view, signal);
    found.push(losses.reduce((sum, { count }) => sum + count, 0));
    for (const { cause } of losses) causes.add(cause);
  }
  return { found, causes: [...causes] };
}

test('a connection that waits for a deleted endpoint for two readings is lost, once', async () => {
  const both = [flow(1), flow(2)];
  expect(await lossesOf([[], both, both, both])).toEqual({ found: [0, 2, 0], causes: ['staleRule'] });
});

test('nothing is looked for while tables stay as they are', async () => {
  expect((await lossesOf([[], [flow(1)], [flow(1)]], { tableAge: 20_000 })).found).toEqual([0, 0]);
});

test('behind a proxy without lag the flow is stale, and not the rule', async () => {
  expect((await lossesOf([[], [flow(1)], [flow(1)]], { proxyLag: 0 })).causes).toEqual(['staleFlow']);
});

test.each<readonly [string, readonly (readonly UnansweredFlow[])[]]>([
  ['waited before', [[flow(1)], [flow(1)], [flow(1)]]],
  ['is answered in time', [[], [flow(1)], [], [flow(2)]]],
  [
    'waits for an endpoint of the Service',
    [[], [flow(1, { endpoint: '10.244.1.5' })], [flow(1, { endpoint: '10.244.1.5' })]],
  ],
  ['is to no Service', [[], [flow(1, { address: '192.0.2.9' })], [flow(1, { address: '192.0.2.9' })]]],
])('a connection is not lost if it %s', async (_, lists) => {
  expect((await lossesOf(lists)).causes).toEqual([]);
});

test.each([
  ['dropped packets stand for as many of the waiting connections', 'NEIGH_FAILED', [1, 2]],
  ['dropped packets that the kernel answered with a reset stand for none', 'NO_SOCKET', [1, 3]],
])('%s', async (_, reason, expected) => {
  const drop = placedDrop({
    flow: tracked('10.96.0.10:80', '10.244.1.99:8080'),
    to: '10.244.1.99:8080',
    reason,
    count: 1,
  });
  const readings = [[drop], []];
  const counter = {
    read: () => ({ drops: readings.shift() ?? [], missed: 0 }),
    [Symbol.dispose]: () => undefined,
  };
  const waiting = [flow(1), flow(2), flow(3)];
  expect((await lossesOf([[], waiting, waiting], { counter })).found).toEqual(expected);
});

test('without the right to list flows there are none, and the rest is read', async () => {
  let attempts = 0;
  const unanswered = () => {
    attempts++;
    throw new HostError('conntrack.refused', 'EPERM');
  };
  expect((await lossesOf([[], [flow(1)], [flow(1)]], { unanswered })).found).toEqual([0, 0]);
  expect(attempts).toBe(1);
});

test.each<readonly [string, readonly (readonly UnansweredFlow[])[], number]>([
  ['that began since', [[], [flow(1), flow(2)]], 2],
  ['that waited before', [[flow(1)], [flow(1)]], 0],
  ['of an endpoint that the Service has', [[], [flow(1, { endpoint: '10.244.1.5' })]], 0],
  ['to another place', [[], [flow(1, { address: '10.96.0.11' })]], 0],
])('of one client to one place, after one reading: connections %s', async (_, lists, expected) => {
  let now = 0;
  const unanswered = () => lists[now / 2000] ?? [];
  const monotonic = () => millis(now);
  using reader = new LossReader({
    netns: nodeNetns,
    counter: undefined,
    readCounters: undefined,
    readFile: () => undefined,
    monotonic,
    unanswered,
  });
  const view = serviceView({ proxyLag: millis(3200), tableAges: new Map([['IPv4', millis(20_000)]]) });
  await reader.start(view, signal);
  now = 2000;
  await reader.read(view, signal);
  const asked = { client: parseIp('10.244.9.9'), address: parseIp('10.96.0.10'), port: 80 };
  const found = reader.waitingOf(asked, view);
  expect(found.map(({ cause, count }) => [cause, count])).toEqual(expected === 0 ? [] : [['staleRule', expected]]);
});
