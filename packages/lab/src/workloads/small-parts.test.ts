import { millis } from '@switchyard/core';
import type { Pod } from '@switchyard/core/kubernetes';
import { expect, test } from 'vitest';
import { apiTime, inDeletionOrder, matchesSelector, replaceCondition, timeScale, withCondition } from './facts.ts';
import { createEventFeed, podEvents, type WorkloadEvent } from './workload-event.ts';
import { templateHash } from './owned-pods.ts';

test('API times are whole seconds, rounded down', () => {
  expect(apiTime(millis(Date.UTC(2026, 10, 21, 2, 0, 40) + 999.9))).toBe('2026-11-21T02:00:40Z');
});

test('a time scale shrinks seconds', () => {
  expect(timeScale(0.1).of(30)).toBe(3000);
});

test.each([0, -1, 1.5, Number.NaN])('%d is no time scale', (factor) => {
  expect(() => timeScale(factor)).toThrow('not a time scale');
});

test('equal templates have equal hashes, in any order of keys and with undefined or absent keys', () => {
  const one = templateHash({ spec: { containers: [{ name: 'a', image: 'x' }] } });
  const same = templateHash({ metadata: undefined, spec: { containers: [{ image: 'x', name: 'a' }] } } as never);
  const other = templateHash({ spec: { containers: [{ name: 'a', image: 'y' }] } });
  expect([same === one, other === one]).toEqual([true, false]);
  expect(one).toMatch(/^[b-z2-9]{1,10}$/);
});

const set = { type: 'A', status: 'True', reason: 'R', lastTransitionTime: 't1' } as const;

test.each([
  { what: 'the same status and reason change nothing', next: { ...set, lastTransitionTime: 't2' }, expected: [set] },
  {
    what: 'a new reason keeps the time',
    next: { ...set, reason: 'S', lastTransitionTime: 't2' },
    expected: [{ ...set, reason: 'S' }],
  },
  {
    what: 'a new status takes the new time',
    next: { ...set, status: 'False' as const, lastTransitionTime: 't2' },
    expected: [{ ...set, status: 'False', lastTransitionTime: 't2' }],
  },
])('$what', ({ next, expected }) => {
  expect(withCondition([set], next)).toEqual(expected);
});

test('replacing moves a condition to the end even if nothing changed', () => {
  const other = { ...set, type: 'B' };
  expect(replaceCondition([set, other], set)).toEqual([other, set]);
});

test.each([
  { what: 'an absent selector', selector: undefined, expected: false },
  { what: 'an empty selector', selector: {}, expected: true },
  { what: 'In', selector: { matchExpressions: [{ key: 'a', operator: 'In', values: ['1', '2'] }] }, expected: true },
  { what: 'NotIn', selector: { matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['1'] }] }, expected: false },
  {
    what: 'NotIn of an absent key',
    selector: { matchExpressions: [{ key: 'b', operator: 'NotIn', values: ['1'] }] },
    expected: true,
  },
  { what: 'Exists', selector: { matchExpressions: [{ key: 'b', operator: 'Exists' }] }, expected: false },
  { what: 'DoesNotExist', selector: { matchExpressions: [{ key: 'b', operator: 'DoesNotExist' }] }, expected: true },
] as const)('$what against {a: 1} is $expected', ({ selector, expected }) => {
  expect(matchesSelector(selector, { a: '1' })).toBe(expected);
});

test('pods are given up: without node, pending, not ready, ready for a shorter time, younger', () => {
  const pods = [
    pod('old', { readyAt: '01' }),
    pod('young', { readyAt: '05' }),
    pod('unready', { ready: 'False', readyAt: '06' }),
    pod('pending', { phase: 'Pending', ready: 'False' }),
    pod('nowhere', { node: undefined, phase: 'Pending', ready: 'False' }),
  ];
  expect(inDeletionOrder(pods).map(({ metadata }) => metadata.name)).toEqual([
    'nowhere',
    'pending',
    'unready',
    'young',
    'old',
  ]);
});

test('of equal pods those on the fuller node go first', () => {
  const pods = [pod('a', { node: 'n1' }), pod('b', { node: 'n2' }), pod('c', { node: 'n2' })];
  expect(inDeletionOrder(pods)[0]?.metadata.name).toBe('b');
});

test('the life of a pod as events', () => {
  const bare: Pod = { metadata: { name: 'p', namespace: 'x', uid: 'u' } };
  const bound: Pod = { ...bare, spec: { nodeName: 'n1', containers: [] } };
  const ready: Pod = { ...bound, status: { conditions: [{ type: 'Ready', status: 'True' }] } };
  const going: Pod = {
    ...ready,
    metadata: { ...bare.metadata, deletionTimestamp: 't', deletionGracePeriodSeconds: 30 },
  };
  const unready: Pod = { ...going, status: { conditions: [{ type: 'Ready', status: 'False' }] } };
  const states = [undefined, bare, bound, ready, going, unready, undefined];
  const events = states.slice(1).flatMap((after, index) => podEvents(states[index], after, millis(index)));
  const moment = { namespace: 'x', pod: 'p', uid: 'u' };
  expect(events).toEqual([
    { ...moment, at: 0, kind: 'podCreated' },
    { ...moment, at: 1, kind: 'podScheduled', node: 'n1' },
    { ...moment, at: 2, kind: 'podReady', node: 'n1' },
    { ...moment, at: 3, kind: 'deletionTimestampSet', node: 'n1', gracePeriodSeconds: 30 },
    { ...moment, at: 4, kind: 'podUnready', node: 'n1' },
    { ...moment, at: 5, kind: 'objectGone', node: 'n1' },
  ]);
});

test('a pod first seen late gives all events it has behind it', () => {
  const status = { conditions: [{ type: 'Ready', status: 'True' }] } as const;
  const late: Pod = { metadata: { name: 'p' }, spec: { nodeName: 'n', containers: [] }, status };
  expect(podEvents(undefined, late, millis(0)).map(({ kind }) => kind)).toEqual([
    'podCreated',
    'podScheduled',
    'podReady',
  ]);
});

test('a feed gives every reader all events since its call, and ends by abort', async () => {
  const seen: WorkloadEvent[] = [];
  const feed = createEventFeed((event) => seen.push(event));
  const stop = new AbortController();
  const event: WorkloadEvent = { kind: 'podCreated', at: millis(1), namespace: 'x', pod: 'p', uid: 'u' };
  feed.emit(event);
  const reading = feed.read(stop.signal);
  feed.emit({ ...event, at: millis(2) });
  const read: number[] = [];
  for await (const one of reading) {
    read.push(one.at);
    if (one.at === 2) feed.emit({ ...event, at: millis(3) });
    else stop.abort();
  }
  expect([seen.map(({ at }) => at), read]).toEqual([
    [1, 2, 3],
    [2, 3],
  ]);
});

interface PodState {
  readonly node?: string | undefined;
  readonly phase?: 'Pending' | 'Running';
  readonly ready?: 'True' | 'False';
  readonly readyAt?: string;
}

function pod(name: string, state: PodState): Pod {
  const { node = 'node' in state ? undefined : name, phase = 'Running', ready = 'True', readyAt = '00' } = state;
  return {
    metadata: { name, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { containers: [], ...(node === undefined ? {} : { nodeName: node }) },
    status: {
      phase,
      conditions: [{ type: 'Ready', status: ready, lastTransitionTime: `2026-01-01T00:00:${readyAt}Z` }],
    },
  };
}
