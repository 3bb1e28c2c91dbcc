import { type ClusterEvent, HostError, type NodeName } from '@switchyard/core';
import { ManualClock, slice } from '@switchyard/core/testing';
import { beforeEach, expect, test } from 'vitest';
import { drain, type DrainAnswer, type DrainParts, type DrainRequest } from './drain.ts';
import { GateState } from './gate-state.ts';
import type { Want } from './node-watch.ts';
import type { ConnectionsReply, OpenConnections } from './protocol.ts';
import { cartEvent, lists, pod } from './testing/cluster.ts';
import { drainText } from './gate-routes.ts';

const { signal } = new AbortController();

let clock: ManualClock;
let state: GateState;
let wants: Map<NodeName, Want>;
let counts: (number | ConnectionsReply | Error)[];
let changed: PromiseWithResolvers<void>;

beforeEach(() => {
  clock = new ManualClock();
  state = new GateState();
  wants = new Map();
  counts = [0];
  changed = Promise.withResolvers();
});

async function push(...events: readonly ClusterEvent[]): Promise<void> {
  state.apply(events);
  changed.resolve();
  changed = Promise.withResolvers();
  await clock.advance(0);
}

function begin(request: Partial<DrainRequest> = {}): Promise<DrainAnswer> {
  const parts: DrainParts = {
    state,
    clock,
    changed: () => changed.promise,
    waitFor: (node, want) => wants.set(node, want),
    countConnections: async (node) => {
      const count = counts.length > 1 ? counts.shift() : counts[0];
      if (count instanceof Error) throw count;
      return typeof count === 'object' ? count : { node, open: { TCP: count ?? 0 } };
    },
  };
  return drain(
    { addresses: [pod], timeout: clockTime(20_000), connections: 'wait', goal: 'stop', ...request },
    parts,
    signal,
  );
}

const clockTime = (time: number) => new ManualClock(time).monotonic();

async function apply(...nodes: readonly string[]): Promise<void> {
  for (const node of nodes) wants.get(node as NodeName)?.note({ kind: 'applied' });
  await clock.advance(0);
}

test('it is safe when every node has applied that the pod ends, and no connection is open', async () => {
  await push(...lists, cartEvent(101));
  counts = [2, 1, 0];
  const answer = begin();
  await clock.advance(30);
  expect(wants.size).toBe(0); // its slices offer it
  await push(cartEvent(105, { terminating: true }));
  expect(wants.get('n1' as NodeName)).toMatchObject({ version: 105, pods: [{ address: pod, service: 'shop/cart' }] });
  await apply('n1');
  await clock.advance(7);
  await apply('n2');
  await clock.advance(20 + 50 + 50);
  expect(await answer).toEqual({
    addresses: [pod],
    isSafe: true,
    waited: 157,
    services: ['shop/cart'],
    node: 'n1',
    nodes: { total: 2, applied: 2, slowest: { node: 'n2', after: 7 }, waiting: [] },
    open: { TCP: 0 },
    reasons: [],
  });
});

test.each<readonly [string, () => Promise<void>, readonly RegExp[]]>([
  ['before anything is listed', async () => undefined, [/not listed yet/]],
  ['of a pod that does not end', () => push(...lists, cartEvent(101)), [/offer it as ready/]],
  [
    'while nodes are behind',
    async () => {
      await push(...lists, cartEvent(105, { terminating: true }));
      wants.get('n2' as NodeName)?.note({ kind: 'waiting', why: 'does not answer: x' });
      await apply('n1');
    },
    [/^node n2 does not answer: x$/],
  ],
  [
    'while connections are open',
    async () => {
      counts = [3];
      await push(...lists, cartEvent(105, { terminating: true }));
      await apply('n1', 'n2');
    },
    [/^3 TCP connections are open$/],
  ],
])('the time ends %s: it is not safe, for this reason', async (_, arrange, reasons) => {
  const answer = begin({ timeout: clockTime(1000) });
  await arrange();
  await clock.advance(1000);
  const { isSafe, reasons: told, waited } = await answer;
  expect({ isSafe, waited }).toEqual({ isSafe: false, waited: 1000 });
  expect(told).toHaveLength(reasons.length);
  for (const [index, reason] of reasons.entries()) expect(told[index]).toMatch(reason);
});

test.each<readonly [string, Partial<DrainRequest>, ConnectionsReply | Error | number, Partial<DrainAnswer>]>([
  [
    'are counted, but do not matter, if they are ignored',
    { connections: 'ignore' },
    4,
    { open: { TCP: 4 }, reasons: ['4 TCP connections are open'] },
  ],
  [
    'that cannot be counted are mentioned',
    {},
    { node: 'n1', open: {}, why: 'no right' },
    { open: {}, reasons: ['open connections (TCP) were not counted: no right'] },
  ],
  [
    'of a node that does not answer are mentioned',
    {},
    new HostError('x', 'refused'),
    { open: {}, reasons: ['open connections (TCP) were not counted: node n1 does not answer: refused'] },
  ],
])('connections %s', async (_, request, count, expected) => {
  counts = [count];
  await push(...lists, cartEvent(105, { terminating: true }));
  const answer = begin(request);
  await clock.advance(0);
  await apply('n1', 'n2');
  await clock.advance(20);
  expect(await answer).toMatchObject({ isSafe: true, ...expected });
});

const ofAllProtocols: ClusterEvent = {
  kind: 'upsert',
  resource: 'EndpointSlice',
  resourceVersion: 105,
  item: slice('shop/cart', {
    endpoints: [{ ip: pod, node: 'n1', terminating: true }],
    ports: (['TCP', 'UDP', 'SCTP'] as const).map((protocol) => ({ name: protocol.toLowerCase(), port: 53, protocol })),
  }),
};

test.each<readonly [DrainRequest['connections'], OpenConnections, readonly string[]]>([
  ['wait', { TCP: 0, UDP: 2, SCTP: 1 }, ['1 SCTP associations are open']],
  ['wait', { TCP: 0, UDP: 2, SCTP: 0 }, []],
  ['wait-udp', { TCP: 0, UDP: 2, SCTP: 0 }, ['2 UDP flows are open']],
  ['wait-udp', { TCP: 0, UDP: 0, SCTP: 0 }, []],
])('connections of other protocols, %s: %j keep the gate closed for %j', async (connections, open, reasons) => {
  counts = [
    { node: 'n1', open },
    { node: 'n1', open },
    { node: 'n1', open: { TCP: 0, UDP: 0, SCTP: 0 } },
  ];
  await push(...lists, ofAllProtocols);
  const answer = begin({ connections, timeout: clockTime(800) });
  await clock.advance(0);
  await apply('n1', 'n2');
  await clock.advance(800);
  expect(await answer).toMatchObject({ isSafe: reasons.length === 0, open, reasons });
});

test('a pod of no Service needs no node’s connections, and a deleted Node is not waited for', async () => {
  await push(...lists, cartEvent(105, 'gone'));
  const answer = begin();
  await clock.advance(0);
  await apply('n1');
  wants.get('n2' as NodeName)?.note({ kind: 'deleted' });
  await clock.advance(0);
  expect(await answer).toMatchObject({ isSafe: true, services: [], node: undefined, open: {} });
});

test('a pod has started when every node has applied that it is ready', async () => {
  await push(...lists, cartEvent(103, { ready: false }));
  const answer = begin({ goal: 'start' });
  await clock.advance(10);
  expect(wants.size).toBe(0);
  await push(cartEvent(105));
  expect(wants.get('n2' as NodeName)).toMatchObject({ version: 105, pods: [] });
  await apply('n1', 'n2');
  expect(await answer).toMatchObject({ isSafe: true, open: {}, nodes: { applied: 2 } });
});

test('the text says it in one line, with a line for each reason', async () => {
  await push(...lists, cartEvent(105, { terminating: true }));
  const answer = begin({ timeout: clockTime(1000) });
  await clock.advance(0);
  await apply('n1');
  await clock.advance(1000);
  expect(drainText('stop', await answer)).toBe(
    'not safe to stop 10.244.1.5 (shop/cart) after 1000 ms: applied by 1 of 2 nodes, the last n1 after 0 ms\n' +
      '  node n2 has not confirmed version 105 yet\n',
  );
});
