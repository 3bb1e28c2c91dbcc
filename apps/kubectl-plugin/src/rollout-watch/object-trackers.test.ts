import { millis } from '@switchyard/core';
import type { Deployment, EndpointSlice, Pod } from '@switchyard/core/kubernetes';
import { expect, test } from 'vitest';
import { isRolling, PodTracker, RolloutTracker, SliceTracker } from './object-trackers.ts';
import type { WatchEvent } from './watch-event.ts';

interface PodState {
  readonly ready?: boolean;
  readonly deleted?: boolean;
}

function podEvent(
  type: WatchEvent<Pod>['type'],
  name: string,
  { ready = false, deleted }: PodState = {},
): WatchEvent<Pod> {
  const object: unknown = {
    metadata: { name, ...(deleted === true ? { deletionTimestamp: '2026-01-01T00:00:30Z' } : {}) },
    spec: { nodeName: `node-of-${name}` },
    status: { podIPs: [{ ip: `ip-of-${name}` }], conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  };
  return { type, object: object as Pod };
}

test('pods have the time of the first sight of each change', () => {
  const tracker = new PodTracker(['old']);
  expect(tracker.isComplete).toBe(false);
  const events = [
    [10, podEvent('ADDED', 'old', { ready: true })],
    [20, podEvent('ADDED', 'new')],
    [30, podEvent('MODIFIED', 'new', { ready: true })],
    [40, podEvent('MODIFIED', 'old', { ready: true, deleted: true })],
    [50, podEvent('MODIFIED', 'old', { deleted: true })],
    [60, podEvent('MODIFIED', 'new', { ready: false })],
    [70, podEvent('MODIFIED', 'new', { ready: true })],
    [80, podEvent('DELETED', 'old', { deleted: true })],
  ] as const;
  for (const [at, event] of events) tracker.note(event, millis(at));
  expect(tracker.isComplete).toBe(true);
  const [old, fresh] = tracker.pods;
  expect(old).toMatchObject({
    name: 'old',
    isFormer: true,
    created: undefined,
    ready: undefined,
    deleted: 40,
    removed: 80,
  });
  expect(fresh).toMatchObject({
    node: 'node-of-new',
    addresses: ['ip-of-new'],
    created: 20,
    ready: 30,
    removed: undefined,
  });
});

test('a pod that is removed at once was deleted, too', () => {
  const tracker = new PodTracker([]);
  tracker.note(podEvent('ADDED', 'a'), millis(1));
  tracker.note(podEvent('DELETED', 'a'), millis(2));
  expect(tracker.pods).toMatchObject([{ created: 1, ready: undefined, deleted: 2, removed: 2 }]);
});

interface EndpointState {
  readonly address: string;
  readonly ready?: boolean;
  readonly terminating?: boolean;
}

function sliceEvent(
  type: WatchEvent<EndpointSlice>['type'],
  name: string,
  endpoints: readonly EndpointState[] | null,
): WatchEvent<EndpointSlice> {
  const object: unknown = {
    metadata: { name, labels: { 'kubernetes.io/service-name': 'web' } },
    endpoints: endpoints?.map(({ address, ...conditions }) => ({ addresses: [address], conditions })) ?? null,
  };
  return { type, object: object as EndpointSlice };
}

function changesOf(former: readonly string[], events: readonly WatchEvent<EndpointSlice>[]): readonly string[] {
  const tracker = new SliceTracker(former);
  for (const [index, event] of events.entries()) tracker.note(event, millis(index));
  return tracker.changes.map(
    ({ at, service, address, condition, isBefore }) =>
      `${at}: ${service} ${address} ${condition}${isBefore ? ' before' : ''}`,
  );
}

test('endpoints are ready, terminating and removed', () => {
  const changes = changesOf(
    ['s'],
    [
      sliceEvent('ADDED', 's', [{ address: 'a' }]),
      sliceEvent('MODIFIED', 's', [
        { address: 'a', ready: true },
        { address: 'b', ready: false },
      ]),
      sliceEvent('MODIFIED', 's', [
        { address: 'a', ready: false, terminating: true },
        { address: 'b', ready: true },
      ]),
      sliceEvent('MODIFIED', 's', [{ address: 'b' }]),
      sliceEvent('MODIFIED', 's', null),
    ],
  );
  expect(changes).toEqual([
    '0: web a ready before',
    '1: web b notReady',
    '2: web a terminating',
    '2: web b ready',
    '3: web a removed',
    '4: web b removed',
  ]);
});

test('an endpoint that moves to another slice is not removed', () => {
  const changes = changesOf(
    [],
    [
      sliceEvent('ADDED', 's1', [{ address: 'a' }]),
      sliceEvent('ADDED', 's2', [{ address: 'a' }]),
      sliceEvent('DELETED', 's1', [{ address: 'a' }]),
      sliceEvent('DELETED', 's2', [{ address: 'a' }]),
    ],
  );
  expect(changes).toEqual(['0: web a ready', '3: web a removed']);
});

function deployment(generation: number, status: object, replicas = 2): Deployment {
  return { metadata: { name: 'web', generation }, spec: { replicas }, status } as unknown as Deployment;
}

const done = { observedGeneration: 2, updatedReplicas: 2, replicas: 2, availableReplicas: 2 };

test.each<[isWorking: boolean, what: string, object: Deployment]>([
  [false, 'all is done', deployment(2, done)],
  [true, 'the controller has not seen the change', deployment(3, done)],
  [true, 'a new pod is missing', deployment(2, { ...done, updatedReplicas: 1 })],
  [true, 'an old pod is left', deployment(2, { ...done, replicas: 3 })],
  [true, 'a new pod is not available', deployment(2, { ...done, availableReplicas: 1 })],
  [true, 'nothing is there yet', deployment(1, {})],
  [false, 'no pods are wanted', deployment(1, { observedGeneration: 1 }, 0)],
])('rolling %j: %s', (isWorking, _, object) => {
  expect(isRolling(object)).toBe(isWorking);
});

test('a rollout ends when the controller is done and the old pods are removed', () => {
  const pods = new PodTracker(['old']);
  pods.note(podEvent('ADDED', 'old', { ready: true }), millis(0));
  const tracker = new RolloutTracker(deployment(1, { ...done, observedGeneration: 1 }, 1));
  const note = (at: number, object: Deployment): void => tracker.note({ type: 'MODIFIED', object }, millis(at));
  note(1, deployment(1, { observedGeneration: 1, updatedReplicas: 1, replicas: 1, availableReplicas: 1 }, 1));
  expect([tracker.begin, tracker.isEnded(pods.pods)]).toEqual([undefined, false]);
  note(2, deployment(2, { observedGeneration: 1, updatedReplicas: 1, replicas: 1, availableReplicas: 1 }, 1));
  expect([tracker.begin, tracker.isEnded(pods.pods)]).toEqual([2, false]);
  pods.note(podEvent('ADDED', 'new', { ready: true }), millis(3));
  pods.note(podEvent('MODIFIED', 'old', { deleted: true }), millis(4));
  note(5, deployment(2, { observedGeneration: 2, updatedReplicas: 1, replicas: 1, availableReplicas: 1 }, 1));
  expect(tracker.isEnded(pods.pods)).toBe(false);
  pods.note(podEvent('DELETED', 'old', { deleted: true }), millis(6));
  expect([tracker.begin, tracker.isEnded(pods.pods)]).toEqual([2, true]);
});

test('a rollout that was on its way when the watch began counts from its first sight', () => {
  const tracker = new RolloutTracker(deployment(2, { ...done, updatedReplicas: 1 }));
  tracker.note({ type: 'ADDED', object: deployment(2, { ...done, updatedReplicas: 1 }) }, millis(7));
  expect(tracker.begin).toBe(7);
});
