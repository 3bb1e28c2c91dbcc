import { buildTable, type ForwardingTable, type IpFamily } from '@switchyard/core';
import {
  getRequest,
  ManualClock,
  service,
  settle,
  slice,
  stateOf,
  tableOptions,
  wholeAnswer,
} from '@switchyard/core/testing';
import { beforeEach, expect, test } from 'vitest';
import { changesRoute } from './debug-changes.ts';
import { debugState } from './testing/debug-bench.ts';

const { signal } = new AbortController();
const options = tableOptions({ ipFamily: 'IPv4' });
type EndpointSpec = NonNullable<Parameters<typeof slice>[1]>['endpoints'];

let clock: ManualClock;
let tables: Map<IpFamily, ForwardingTable>;
let listeners: Set<() => void>;
let route: ReturnType<typeof changesRoute>;

beforeEach(() => {
  clock = new ManualClock();
  tables = new Map();
  listeners = new Set();
  apply({ cart: ['10.244.1.5'], other: ['10.244.1.9'] });
  route = changesRoute({
    ...debugState({ tables }),
    clock,
    now: () => clock.now(),
    onApplied: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  });
});

/** Puts Services with these endpoints into force. */
function apply(endpoints: Readonly<Record<string, EndpointSpec>>): void {
  const names = Object.keys(endpoints);
  const state = stateOf(
    {
      services: names.map((name, index) => service(`shop/${name}`, { clusterIps: [`10.96.0.${10 + index}`] })),
      slices: names.map((name) => slice(`shop/${name}`, { endpoints: endpoints[name] ?? [] })),
    },
    options.nodeName,
  );
  tables.set('IPv4', buildTable(state, 'all', tables.get('IPv4'), options));
  for (const listener of listeners) listener();
}

/** The answer's lines, after `act` ran while it was open. */
async function watch(query: string, act: () => void | Promise<void>): Promise<readonly Record<string, unknown>[]> {
  const answer = wholeAnswer(route(getRequest(`/debug/changes${query}`), signal));
  while (clock.sleeping === 0) await settle();
  await act();
  await settle();
  await clock.advance(10_000);
  const { status, body } = await answer;
  expect(status).toBe(200);
  expect(listeners.size).toBe(0);
  return body
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

test('a change has a line with the time of its apply, after one with the state before', async () => {
  const begin = clock.now();
  const lines = await watch('', async () => {
    await clock.advance(1500);
    apply({
      cart: [{ ip: '10.244.1.5', ready: false, serving: true, terminating: true }, '10.244.2.5'],
      other: ['10.244.1.9'],
    });
  });
  const at = (after: number): string => new Date(begin + after).toISOString();
  expect(lines).toMatchObject([
    { node: 'n1', time: at(0), isObserver: false },
    {
      time: at(0),
      node: 'n1',
      service: 'shop/cart:/TCP',
      ipFamily: 'IPv4',
      before: true,
      endpoints: [{ address: '10.244.1.5', ready: true, usedBy: ['Cluster'] }],
    },
    {
      time: at(1500),
      service: 'shop/cart:/TCP',
      generation: 2,
      endpoints: [
        { address: '10.244.1.5', terminating: true, usedBy: [] },
        { address: '10.244.2.5', ready: true, usedBy: ['Cluster'] },
      ],
    },
  ]);
  expect(lines).toHaveLength(3);
});

test('a Service that comes has no state before; one that goes ends without endpoints', async () => {
  const lines = await watch('', () => {
    apply({ cart: ['10.244.1.5'], other: ['10.244.1.9'], third: [] });
    apply({ cart: ['10.244.1.5'] });
  });
  expect(
    lines.slice(1).map(({ service: key, before = false, endpoints }) => [key, before, (endpoints as unknown[]).length]),
  ).toEqual([
    ['shop/third:/TCP', false, 0],
    ['shop/other:/TCP', true, 1],
    ['shop/other:/TCP', false, 0],
    ['shop/third:/TCP', false, 0],
  ]);
});

test('with a Service: its state first, and its changes alone', async () => {
  const lines = await watch('?service=shop/other', () => {
    apply({ cart: [], other: ['10.244.1.9'] });
    apply({ cart: [], other: [] });
  });
  expect(
    lines.slice(1).map(({ service: key, before = false, endpoints }) => [key, before, (endpoints as unknown[]).length]),
  ).toEqual([
    ['shop/other:/TCP', true, 1],
    ['shop/other:/TCP', false, 0],
  ]);
});

test('a slow client gets the number of changes that it missed', async () => {
  const many = Array.from({ length: 250 }, (_, index) => `10.244.3.${index}`);
  const lines = await watch('', () => {
    for (let round = 0; round < 400; round++) apply({ cart: round % 2 === 0 ? many : [], other: ['10.244.1.9'] });
  });
  const { missed } = lines.at(-1) ?? {};
  expect(missed).toBeGreaterThan(100);
  expect(lines).toHaveLength(2 + 400 - Number(missed) + 1); // the node's, the state before, changes, the count
});

test('an apply without a change of endpoints writes nothing', async () => {
  const lines = await watch('', () => apply({ cart: ['10.244.1.5'], other: ['10.244.1.9'] }));
  expect(lines).toHaveLength(1);
});

test('a client that has gone is noticed within 10 s', async () => {
  const answer = wholeAnswer(route(getRequest('/debug/changes?seconds=25'), signal));
  for (const wait of [10_000, 10_000, 5000]) {
    while (clock.sleeping === 0) await settle();
    await clock.advance(wait);
  }
  expect((await answer).body).toMatch(/^\{.*\}\n\n\n\n$/);
});

test.each([
  ['?service=cart', 'service "cart" is not NAMESPACE/NAME'],
  ['?seconds=0', 'seconds "0" is no number from 1 to 3600'],
  ['?name=x', 'unknown parameter "name"'],
])('%s is refused with the reason', async (query, reason) => {
  const { status, body } = await wholeAnswer(route(getRequest(`/debug/changes${query}`), signal));
  expect(status).toBe(400);
  expect(body).toMatch(new RegExp(`^${reason.replaceAll('"', '.')}\n\nusage: /debug/changes`));
});

test('no more than 16 watch at a time', async () => {
  const open = Array.from({ length: 16 }, async () => wholeAnswer(route(getRequest('/debug/changes'), signal)));
  while (clock.sleeping < 16) await settle();
  expect((await wholeAnswer(route(getRequest('/debug/changes'), signal))).status).toBe(429);
  await clock.advance(10_000);
  await Promise.all(open);
});
