import { seconds } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { type ExampleChanges, exampleNode, exampleObjects } from '../testing/example-objects.ts';
import { type Workload, workloadOf } from './workload.ts';

function workload(changes: ExampleChanges = {}): Workload {
  const objects = exampleObjects(changes);
  return workloadOf(objects.deployments[0]!, objects);
}

const rolling = (rollingUpdate: object, replicas = 1): ExampleChanges => ({
  deployment: { replicas, strategy: { type: 'RollingUpdate', rollingUpdate } },
});
const pod = (readyAt: string, owner = 'web-5d4f'): unknown => ({
  metadata: {
    creationTimestamp: '2026-11-21T10:00:00Z',
    ownerReferences: [{ kind: 'ReplicaSet', name: owner }],
  },
  status: { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: readyAt }] },
});
const tainted = (effect: string): object => ({ taints: [{ key: 'node-role.kubernetes.io/control-plane', effect }] });

describe('workloadOf', () => {
  test('reads what decides a loss', () => {
    expect(workload({ pod: { terminationGracePeriodSeconds: 45 }, deployment: { minReadySeconds: 7 } })).toMatchObject({
      gracePeriod: seconds(45),
      minReady: seconds(7),
    });
  });
  test('fills in what the API server would', () => {
    expect(workload({ deployment: { replicas: undefined, strategy: undefined } })).toMatchObject({
      replicas: 1,
      strategy: { kind: 'RollingUpdate', maxSurge: 1, maxUnavailable: 0 },
      minReady: 0,
      gracePeriod: seconds(30),
    });
  });
  test.each<[what: string, changes: ExampleChanges, strategy: Workload['strategy']]>([
    [
      'shares of the replicas: surge up, unavailable down',
      rolling({ maxSurge: '25%', maxUnavailable: '25%' }, 10),
      { kind: 'RollingUpdate', maxSurge: 3, maxUnavailable: 2 },
    ],
    [
      'counts',
      rolling({ maxSurge: 2, maxUnavailable: 0 }, 10),
      { kind: 'RollingUpdate', maxSurge: 2, maxUnavailable: 0 },
    ],
    [
      'nothing of both, which lets one go',
      rolling({ maxSurge: 0, maxUnavailable: '25%' }, 3),
      { kind: 'RollingUpdate', maxSurge: 0, maxUnavailable: 1 },
    ],
    ['Recreate', { deployment: { strategy: { type: 'Recreate' } } }, { kind: 'Recreate' }],
  ])('reads a strategy of %s', (_, changes, strategy) => {
    expect(workload(changes).strategy).toEqual(strategy);
  });
  test('reads hook and probe of the container that the Service leads to', () => {
    expect(workload({ container: { lifecycle: { preStop: { sleep: { seconds: 3 } } } } })).toMatchObject({
      preStop: { kind: 'sleep', duration: seconds(3) },
      readinessProbe: { period: seconds(1) },
    });
  });
  test.each<[what: string, changes: ExampleChanges, spread: string]>([
    ['its own pods by host name', {}, 'perNode'],
    ['no pods', { pod: { affinity: undefined } }, 'anywhere'],
    [
      'others',
      {
        service: {},
        pod: {
          affinity: {
            podAntiAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'db' } } },
              ],
            },
          },
        },
      },
      'anywhere',
    ],
  ])('sees anti-affinity against %s', (_, changes, spread) => {
    expect(workload(changes).spread).toBe(spread);
  });
  test.each<[what: string, node: unknown, changes: ExampleChanges, count: number]>([
    ['one that is free', exampleNode('c'), {}, 3],
    ['none that is cordoned', exampleNode('c', { unschedulable: true }), {}, 2],
    ['none with a taint', exampleNode('c', tainted('NoSchedule')), {}, 2],
    ['one whose taint is a wish', exampleNode('c', tainted('PreferNoSchedule')), {}, 3],
    [
      'one whose taint is tolerated',
      exampleNode('c', tainted('NoSchedule')),
      { pod: { tolerations: [{ operator: 'Exists' }] } },
      3,
    ],
    [
      'none that load balancers leave out',
      exampleNode('c', {}, { 'node.kubernetes.io/exclude-from-external-load-balancers': '' }),
      {},
      2,
    ],
  ])('counts nodes: %s', (_, node, changes, count) => {
    expect(workload({ ...changes, nodes: [exampleNode('a'), exampleNode('b'), node] }).nodes).toBe(count);
  });
  test('counts only nodes that its nodeSelector allows', () => {
    const nodes = [exampleNode('a', {}, { disk: 'ssd' }), exampleNode('b')];
    expect(workload({ nodes, pod: { nodeSelector: { disk: 'ssd' } } }).nodes).toBe(1);
  });
  test('takes the time to readiness from the quickest of its own pods', () => {
    const pods = [
      pod('2026-11-21T10:00:09Z'),
      pod('2026-11-21T10:00:04Z'),
      pod('2026-11-21T10:00:01Z', 'web-admin-7c9d'),
    ];
    expect(workload({ pods })).toMatchObject({ startup: seconds(4), startupFrom: 'pods' });
  });
  test('takes it from the probe while there are none', () => {
    const readinessProbe = { initialDelaySeconds: 5, periodSeconds: 2, successThreshold: 3 };
    expect(workload({ container: { readinessProbe } })).toMatchObject({ startup: seconds(11), startupFrom: 'probe' });
  });
});
