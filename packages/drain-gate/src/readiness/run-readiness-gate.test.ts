import type { ClusterEvent, NodeName, RecordedEvent } from '@switchyard/core';
import type { JsonRequest } from '@switchyard/core/kubernetes';
import { ManualClock, MemoryLogger, node } from '@switchyard/core/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { GateState } from '../gate-state.ts';
import type { Want } from '../node-watch.ts';
import { cartEvent, lists, pod as address } from '../testing/cluster.ts';
import { runReadinessGate, type WaitingPodEvent } from './run-readiness-gate.ts';
import type { WaitingPod } from './waiting-pod.ts';

const pod: WaitingPod = {
  key: 'shop/cart-1',
  namespace: 'shop',
  name: 'cart-1',
  uid: 'u1',
  addresses: [address],
  condition: undefined,
};
const upsert: WaitingPodEvent = { kind: 'upsert', resource: 'Pod', item: pod };

let clock: ManualClock;
let state: GateState;
let wants: (readonly [NodeName, Want])[];
let requests: JsonRequest[];
let statuses: number[];
/** Happens between a request and its answer. */
let beforeAnswer: () => void;
let events: RecordedEvent[];
let logger: MemoryLogger;
let changed: PromiseWithResolvers<void>;
let deliver: (event: WaitingPodEvent) => void;
let stop: AbortController;
let running: Promise<unknown>;

beforeEach(async () => {
  clock = new ManualClock(Date.parse('2026-11-27T08:00:00Z'));
  state = new GateState();
  [wants, requests, statuses, events] = [[], [], [], []];
  beforeAnswer = () => undefined;
  logger = new MemoryLogger();
  changed = Promise.withResolvers();
  stop = new AbortController();
  const options = {
    view: {
      state,
      clock,
      changed: () => changed.promise,
      waitFor: (name: NodeName, want: Want) => void wants.push([name, want]),
    },
    followPods: async (take: typeof deliver, signal: AbortSignal) => {
      deliver = take;
      await clock.sleep(1e12 as never, signal);
    },
    send: async (request: JsonRequest, signal: AbortSignal) => {
      requests.push(request);
      beforeAnswer();
      signal.throwIfAborted();
      return { status: statuses.shift() ?? 200, body: '', retryAfter: undefined };
    },
    events: { record: (event: RecordedEvent) => void events.push(event) },
    clock,
    random: () => 0,
    logger,
  };
  running = runReadinessGate(options, stop.signal).catch((error: unknown) => error);
  await clock.advance(0);
});

afterEach(async () => {
  stop.abort();
  await clock.advance(100);
  await running;
  expect(clock.sleeping).toBe(0);
});

async function push(...batch: readonly ClusterEvent[]): Promise<void> {
  state.apply(batch);
  changed.resolve();
  changed = Promise.withResolvers();
  await clock.advance(0);
}

/** Lets nodes say something to all that wait for them. */
async function note(progress: Parameters<Want['note']>[0], ...nodes: readonly string[]): Promise<void> {
  for (const [name, want] of wants) if (nodes.includes(name)) want.note(progress);
  await clock.advance(0);
}

/** The conditions of all patches, as `STATUS REASON: MESSAGE`. */
function written(): readonly string[] {
  return requests.map(({ body }) => {
    type Body = { readonly status: { readonly conditions: readonly Record<string, string>[] } };
    const [condition = {}] = (body as Body).status.conditions; // as conditionRequest makes it
    return `${condition['status']} ${condition['reason']}: ${condition['message']}`;
  });
}

const applied = { kind: 'applied' } as const;
const behind = { kind: 'waiting', why: 'has applied version 103, not yet 105' } as const;

test('the condition is True when all nodes have applied the slices as they were when the containers became ready', async () => {
  await push(...lists, cartEvent(105, { ready: false }));
  deliver(upsert);
  await clock.advance(50);
  expect(wants.map(([name, { version }]) => [name, version])).toEqual([
    ['n1', 105],
    ['n2', 105],
  ]);
  expect(wants[0]?.[1].pods).toEqual([{ address, service: 'shop/cart' }]);
  await push(cartEvent(110, { ready: false })); // later changes do not matter
  await note(applied, 'n1');
  expect(written()).toEqual([]);
  await note(applied, 'n2');
  expect(written()).toEqual(['True NodesFollow: 2 nodes have applied its EndpointSlices']);
  expect(events).toEqual([]);
});

test('it is False with the nodes that are behind, at most every 10 s, and True later', async () => {
  await push(...lists, cartEvent(105, { ready: false }));
  deliver(upsert);
  await clock.advance(50);
  await note(applied, 'n1');
  await note(behind, 'n2');
  await clock.advance(3000);
  const first = 'False NodesBehind: node n2 has applied version 103, not yet 105';
  expect(written()).toEqual([first]);
  deliver(upsert); // by our own write
  await clock.advance(30_000);
  expect(written()).toEqual([first]); // nothing new
  await note({ kind: 'waiting', why: 'does not answer: x' }, 'n2');
  await clock.advance(10_000);
  const second = 'False NodesBehind: node n2 does not answer: x';
  expect(written()).toEqual([first, second]);
  await note(applied, 'n2');
  expect(written()).toEqual([first, second, 'True NodesFollow: 2 nodes have applied its EndpointSlices']);
  expect(events.map(({ type, reason, regarding }) => [type, reason, regarding.name])).toEqual([
    ['Warning', 'NodesBehind', 'cart-1'],
    ['Warning', 'NodesBehind', 'cart-1'],
    ['Normal', 'NodesFollow', 'cart-1'],
  ]);
  deliver(upsert); // from before the last write
  await clock.advance(20_000);
  expect(requests).toHaveLength(3);
});

test('many nodes that are behind are counted', async () => {
  const items = Array.from({ length: 5 }, (_, index) => node(`n${index}`));
  await push(...lists, { kind: 'replace', resource: 'Node', items }, cartEvent(105, { ready: false }));
  deliver(upsert);
  await clock.advance(3050);
  expect(written()).toEqual([
    `False NodesBehind: ${['n0', 'n1', 'n2'].map((name) => `node ${name} has not confirmed version 105 yet; `).join('')}and 2 more`,
  ]);
});

test.each<readonly [string, readonly ClusterEvent[], number, string]>([
  ['no slice lists', [cartEvent(105, 'gone')], 3000, 'True NoService: no EndpointSlice of a Service lists the pod'],
  [
    'a slice lists only later',
    [cartEvent(105, 'gone')],
    1000,
    'True NodesFollow: 2 nodes have applied its EndpointSlices',
  ],
])('a pod that %s', async (_, batch, wait, expected) => {
  await push(...lists, ...batch);
  deliver(upsert);
  await clock.advance(wait - 1);
  expect([requests, wants]).toEqual([[], []]);
  if (wait < 3000) await push(cartEvent(107, { ready: false }));
  await clock.advance(51);
  await note(applied, 'n1', 'n2');
  expect(written()).toEqual([expected]);
});

test('nothing happens before Nodes and EndpointSlices are listed', async () => {
  deliver(upsert);
  await clock.advance(60_000);
  expect(requests).toEqual([]);
  await push(...lists, cartEvent(105, { ready: false }));
  await clock.advance(50);
  expect(wants).toHaveLength(2);
});

test('pods that wait at the same time share one question to each node', async () => {
  await push(...lists, cartEvent(105, { ready: false }));
  const others = ['cart-2', 'cart-3'].map((name) => ({ ...pod, name, key: `shop/${name}`, uid: name }));
  deliver({ kind: 'replace', resource: 'Pod', items: [pod, ...others] });
  await clock.advance(50);
  expect(wants).toHaveLength(2);
  await note(applied, 'n1', 'n2');
  expect(requests.map(({ path }) => path.split('/').at(-2))).toEqual(['cart-1', 'cart-2', 'cart-3']);
});

test.each<readonly [string, WaitingPodEvent]>([
  ['that was deleted', { kind: 'delete', resource: 'Pod', name: pod.key }],
  ['that no list has', { kind: 'replace', resource: 'Pod', items: [] }],
])('a pod %s is not waited for', async (_, event) => {
  await push(...lists, cartEvent(105, { ready: false }));
  deliver(upsert);
  await clock.advance(50);
  deliver(event);
  await clock.advance(20_000);
  expect(wants.every(([, { signal }]) => signal.aborted)).toBe(true);
  expect(requests).toEqual([]);
});

test('a write counts also if the watch delivers it before the answer comes', async () => {
  await push(...lists, cartEvent(105, { ready: false }));
  deliver(upsert);
  await clock.advance(3050);
  beforeAnswer = () => deliver({ kind: 'delete', resource: 'Pod', name: pod.key });
  await note(applied, 'n1', 'n2');
  expect(events.map(({ reason }) => reason)).toEqual(['NodesBehind', 'NodesFollow']);
  await clock.advance(20_000);
  expect(requests).toHaveLength(2);
});

test('another pod of the name begins anew', async () => {
  await push(...lists, cartEvent(105, { ready: false }));
  deliver(upsert);
  await clock.advance(50);
  deliver({ ...upsert, item: { ...pod, uid: 'u2' } } as WaitingPodEvent);
  await clock.advance(50);
  await note(applied, 'n1', 'n2');
  expect(requests.map(({ body }) => body)).toMatchObject([{ metadata: { uid: 'u2' } }]);
});

test('a refused write is repeated, and logged once with the missing right', async () => {
  await push(...lists, cartEvent(105, { ready: false }));
  statuses = [403, 500];
  deliver(upsert);
  await clock.advance(50);
  await note(applied, 'n1', 'n2');
  await clock.advance(5000);
  expect(written()).toHaveLength(3);
  const warnings = logger.lines.filter(({ level }) => level === 'warn');
  expect(warnings.map(({ fields }) => fields?.['reason'])).toEqual([
    expect.stringMatching(/^PATCH .* answered 403: .*grant "patch" on pods\/status/),
  ]);
});
