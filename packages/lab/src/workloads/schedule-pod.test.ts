import type { Node, Pod, PodSpec } from '@switchyard/core/kubernetes';
import { expect, test } from 'vitest';
import { schedulePod } from './scheduler.ts';

const three = [node('n1'), node('n2'), node('n10')];
const apart: PodSpec['affinity'] = {
  podAntiAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { labelSelector: { matchLabels: { app: 'zero' } }, topologyKey: 'kubernetes.io/hostname' },
    ],
  },
};

test.each<{ what: string; pod?: Pod; nodes?: readonly Node[]; pods?: readonly Pod[]; expected: string }>([
  { what: 'an empty cluster gives the first node', expected: 'n1' },
  { what: 'the node without siblings wins', pods: [placed('a', 'n1', {}, 'me')], expected: 'n2' },
  {
    what: 'then the node with fewer pods, numbers in order',
    pods: [placed('a', 'n1'), placed('b', 'n2')],
    expected: 'n10',
  },
  {
    what: 'a terminating sibling does not attract or repel',
    pods: [going(placed('a', 'n1', {}, 'me'))],
    expected: 'n1',
  },
  { what: 'a cordoned node is passed over', nodes: [node('n1', { unschedulable: true }), node('n2')], expected: 'n2' },
  {
    what: 'a taint is passed over',
    nodes: [node('n1', { taints: [{ key: 'k', effect: 'NoSchedule' }] }), node('n2')],
    expected: 'n2',
  },
  {
    what: 'a tolerated taint is not',
    pod: waiting({ tolerations: [{ key: 'k', operator: 'Exists' }] }),
    nodes: [node('n1', { taints: [{ key: 'k', effect: 'NoSchedule' }] })],
    expected: 'n1',
  },
  {
    what: 'a PreferNoSchedule taint is no obstacle',
    nodes: [node('n1', { taints: [{ key: 'k', effect: 'PreferNoSchedule' }] })],
    expected: 'n1',
  },
  {
    what: 'nodeSelector is obeyed',
    pod: waiting({ nodeSelector: { 'kubernetes.io/hostname': 'n2' } }),
    expected: 'n2',
  },
  {
    what: 'anti-affinity is obeyed',
    pod: waiting({ affinity: apart }),
    pods: [placed('a', 'n1'), placed('b', 'n2')],
    expected: 'n10',
  },
  {
    what: 'anti-affinity counts terminating pods',
    pod: waiting({ affinity: apart }),
    pods: [going(placed('a', 'n1'))],
    expected: 'n2',
  },
  {
    what: 'anti-affinity does not count ended pods',
    pod: waiting({ affinity: apart }),
    pods: [ended(placed('a', 'n1'))],
    expected: 'n1',
  },
  {
    what: 'the anti-affinity of a pod that is there counts too',
    pods: [placed('a', 'n1', { affinity: apart })],
    expected: 'n2',
  },
])('$what', ({ pod = waiting({}), nodes = three, pods = [], expected }) => {
  expect(schedulePod(pod, { nodes, pods })).toEqual({ status: 'fits', nodeName: expected });
});

test('the message of a pod without a fitting node counts the reasons', () => {
  const nodes = [node('n1', { unschedulable: true }), node('n2'), node('n3')];
  const pods = [placed('a', 'n2'), placed('b', 'n3')];
  expect(schedulePod(waiting({ affinity: apart }), { nodes, pods })).toEqual({
    status: 'unschedulable',
    message: "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match pod anti-affinity rules.",
  });
});

test('a cluster without nodes says so', () => {
  expect(schedulePod(waiting({}), { nodes: [], pods: [] })).toMatchObject({
    message: '0/0 nodes are available: no nodes are registered.',
  });
});

function node(name: string, spec: NonNullable<Node['spec']> = {}): Node {
  return { metadata: { name, labels: { 'kubernetes.io/hostname': name } }, spec };
}

function waiting(spec: Partial<PodSpec>): Pod {
  return {
    metadata: { name: 'new', namespace: 'x', labels: { app: 'zero' }, ownerReferences: [owner('me')] },
    spec: { containers: [], ...spec },
  };
}

function placed(name: string, nodeName: string, spec: Partial<PodSpec> = {}, ownedBy = 'other'): Pod {
  return {
    metadata: { name, namespace: 'x', labels: { app: 'zero' }, ownerReferences: [owner(ownedBy)] },
    spec: { nodeName, containers: [], ...spec },
  };
}

function owner(uid: string): NonNullable<Pod['metadata']['ownerReferences']>[number] {
  return { apiVersion: 'apps/v1', kind: 'Deployment', name: uid, uid, controller: true };
}

function going(pod: Pod): Pod {
  return { ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
}

function ended(pod: Pod): Pod {
  return { ...pod, status: { phase: 'Failed' } };
}
