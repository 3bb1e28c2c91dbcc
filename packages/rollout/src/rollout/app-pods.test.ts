import { millis } from '@switchyard/core';
import type { WorkloadEvent } from '@switchyard/lab';
import { expect, test } from 'vitest';
import { servingPods } from './pod-moments.ts';

let now = 0;
const event = (
  kind: 'podCreated' | 'podReady' | 'podUnready' | 'objectGone' | 'deletionTimestampSet',
  pod: string,
): WorkloadEvent => {
  now += 1;
  return {
    at: millis(now),
    namespace: 'default',
    pod,
    uid: pod,
    node: 'n1',
    kind,
    gracePeriodSeconds: 30,
  } as WorkloadEvent;
};

test('the pods of one app that are ready and not going, in the order in which they became ready', () => {
  const events = [
    event('podCreated', 'web-1'),
    event('podCreated', 'web-2'),
    event('podReady', 'web-2'),
    event('podReady', 'web-1'),
    event('podReady', 'other-1'),
    event('deletionTimestampSet', 'web-2'),
    event('podCreated', 'web-3'),
  ];
  expect(servingPods(events, 'web').map(({ name }) => name)).toEqual(['web-1']);
  expect(servingPods([...events, event('podReady', 'web-3')], 'web').map(({ name }) => name)).toEqual([
    'web-1',
    'web-3',
  ]);
});
