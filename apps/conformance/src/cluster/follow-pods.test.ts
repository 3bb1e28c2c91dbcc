import { millis } from '@switchyard/core';
import type { Pod } from '@switchyard/core/kubernetes';
import { expect, test } from 'vitest';
import { PodHistory } from './follow-pods.ts';

interface PodState {
  readonly isReady?: boolean;
  readonly isDeleted?: boolean;
  readonly exitCode?: number;
}

function pod(name: string, { isReady = false, isDeleted = false, exitCode }: PodState = {}): Pod {
  const terminated = exitCode === undefined ? {} : { state: { terminated: { exitCode } } };
  return {
    metadata: {
      name,
      namespace: 'n',
      uid: `uid-${name}`,
      ...(isDeleted ? { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 9 } : {}),
    },
    spec: { nodeName: 'node1', containers: [{ name: 'traffic' }] },
    status: {
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
      containerStatuses: [{ name: 'traffic', image: '', imageID: '', ready: isReady, restartCount: 0, ...terminated }],
    },
  } as Pod;
}

const kinds = ({ events }: PodHistory): readonly string[] =>
  events.map(({ at, pod: name, kind }) => `${at} ${name} ${kind}`);

test('a pod of a cluster becomes ready, is deleted, ends and is gone', () => {
  const history = new PodHistory();
  history.replace([pod('a')], millis(1));
  history.set(pod('a', { isReady: true }), false, millis(2));
  history.set(pod('a', { isReady: true, isDeleted: true }), false, millis(3));
  history.set(pod('a', { isDeleted: true, exitCode: 0 }), false, millis(4));
  history.set(pod('a', { isDeleted: true, exitCode: 0 }), true, millis(5));
  expect(kinds(history)).toEqual([
    '1 a podCreated',
    '1 a podScheduled',
    '2 a podReady',
    '3 a deletionTimestampSet',
    '4 a processEnded',
    '4 a podUnready',
    '5 a objectGone',
  ]);
});

test('a pod that a new list leaves out has ended and is gone', () => {
  const history = new PodHistory();
  history.replace([pod('a'), pod('b')], millis(1));
  history.replace([pod('b')], millis(2));
  expect(kinds(history).filter((text) => text.startsWith('2'))).toEqual(['2 a processEnded', '2 a objectGone']);
});
