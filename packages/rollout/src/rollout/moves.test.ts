import { millis } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import type { PodMoment } from '../run-record.ts';
import { movesOf } from './pod-moments.ts';

const moment = (at: number, pod: string, node: string, phase: PodMoment['phase']): PodMoment => ({
  at: millis(at),
  pod,
  node,
  phase,
});

const place = (name: string, node: string): { name: string; node: string } => ({ name, node });

describe('which pod makes way for which', () => {
  test('a DaemonSet: the next one on the same node', () => {
    const pods = [
      moment(1, 'a', 'n1', 'deleting'),
      moment(3, 'y', 'n2', 'ready'),
      moment(4, 'x', 'n1', 'ready'),
      moment(5, 'b', 'n2', 'deleting'),
    ];
    expect(movesOf(pods, [place('a', 'n1'), place('b', 'n2')], 'daemonset')).toEqual([
      { oldPod: place('a', 'n1'), newPod: place('x', 'n1'), deletedAt: 1 },
      { oldPod: place('b', 'n2'), newPod: place('y', 'n2'), deletedAt: 5 },
    ]);
  });

  test('a Deployment: whichever becomes ready, before the deletion or after it', () => {
    const pods = [
      moment(1, 'x', 'n2', 'ready'),
      moment(2, 'a', 'n1', 'deleting'),
      moment(3, 'y', 'n1', 'ready'),
      moment(4, 'b', 'n2', 'deleting'),
    ];
    expect(movesOf(pods, [place('a', 'n1'), place('b', 'n2')], 'deployment').map(({ newPod }) => newPod.name)).toEqual([
      'x',
      'y',
    ]);
  });

  test('an old pod without a successor is an error, not a result', () => {
    const pods = [moment(1, 'a', 'n1', 'deleting')];
    expect(() => movesOf(pods, [place('a', 'n1')], 'deployment')).toThrow('not each of a was deleted and followed');
  });
});
