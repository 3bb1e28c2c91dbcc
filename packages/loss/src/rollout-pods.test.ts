import { describe, expect, test } from 'vitest';
import { seconds } from '@switchyard/core';
import { rolloutPods } from './rollout-pods.ts';
import type { RolloutShape } from './rollout-setting.ts';

const app = { startup: seconds(2), preStop: seconds(0), drain: seconds(5), gracePeriod: seconds(30) };
const rolling = (maxSurge: number, maxUnavailable: number): RolloutShape['strategy'] => ({
  kind: 'RollingUpdate',
  maxSurge,
  maxUnavailable,
});
const shape = (changes: Partial<RolloutShape>): RolloutShape => ({
  replicas: 1,
  nodes: 2,
  spread: 'perNode',
  strategy: rolling(1, 0),
  minReady: seconds(0),
  ...changes,
});

/** Each pod as `node: ready to deleted`, in seconds. */
function lives(changes: Partial<RolloutShape>): readonly string[] {
  return rolloutPods(shape(changes), app).pods.map(({ node, readyAt, deletedAt }) => {
    const from = readyAt === -Infinity ? '' : (readyAt / 1000).toFixed(0);
    const to = deletedAt === Infinity ? '' : (deletedAt / 1000).toFixed(0);
    return `${node}: ${from}-${to}`;
  });
}

describe('rolloutPods', () => {
  test.each<[what: string, changes: Partial<RolloutShape>, pods: readonly string[]]>([
    ['one replica moves to the other node', {}, ['0: -2', '1: 2-']],
    ['the old pod waits for minReadySeconds of the new one', { minReady: seconds(10) }, ['0: -12', '1: 2-']],
    ['without surge the old pod goes first', { strategy: rolling(0, 1) }, ['0: -0', '1: 2-']],
    [
      'surge 1 replaces three pods one after the other, each on the node that is free',
      { replicas: 3, nodes: 4 },
      ['0: -2', '1: -9', '2: -16', '3: 2-', '0: 9-', '1: 16-'],
    ],
    [
      'several may go at once',
      { replicas: 2, nodes: 4, strategy: rolling(2, 0) },
      ['0: -2', '1: -2', '2: 2-', '3: 2-'],
    ],
    ['Recreate waits until all old pods have ended', { strategy: { kind: 'Recreate' } }, ['0: -0', '0: 7-']],
    ['on a single node pods may share it', { nodes: 1, spread: 'anywhere' }, ['0: -2', '0: 2-']],
    [
      'with room on every node the fewest decide',
      { replicas: 2, nodes: 2, spread: 'anywhere' },
      ['0: -2', '1: -4', '0: 2-', '1: 4-'],
    ],
  ])('%s', (_, changes, pods) => {
    expect(lives(changes)).toEqual(pods);
  });
  test('a pod serves on after its deletion', () => {
    const [old] = rolloutPods(shape({}), app).pods;
    expect(old?.endsAt).toBeCloseTo((old?.deletedAt ?? 0) + 5000);
  });
  test('cannot end when every node has a pod, none may have two and none may go first', () => {
    expect(rolloutPods(shape({ replicas: 2 }), app).endsAt).toBe(Infinity);
  });
  test('ends when the last old pod has ended', () => {
    expect(rolloutPods(shape({}), app).endsAt).toBeCloseTo(7060);
  });
  test('replicas that no node has room for are left out', () => {
    expect(rolloutPods(shape({ replicas: 5, strategy: rolling(0, 1) }), app).pods.length).toBe(4);
  });
});
