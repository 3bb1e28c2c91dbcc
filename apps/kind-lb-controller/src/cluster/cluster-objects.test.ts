import { describe, expect, test } from 'vitest';
import { lbNode, lbService, type RawServiceSpec } from '../testing/builders.ts';
import { lbSlice, rawSlice } from '../testing/plan-input.ts';
import {
  concernsLoadBalancers,
  exclusionLabel,
  isOurs,
  type NodeExclusion,
  newSliceProjection,
} from './cluster-objects.ts';

const labels = { [exclusionLabel]: '' };
const deletionTimestamp = '2026-01-01T00:00:00Z' as unknown as Date;
const taints = [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }];

test.each<[title: string, changes: Parameters<typeof lbNode>[2], expected: NodeExclusion | undefined]>([
  ['nothing special', {}, undefined],
  ['the label, with any value', { metadata: { labels: { [exclusionLabel]: 'false' } } }, 'label'],
  ['the taint', { spec: { taints } }, 'taint'],
  ['another taint', { spec: { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }] } }, undefined],
  ['a deletion', { metadata: { deletionTimestamp } }, 'beingDeleted'],
  ['taint and label', { metadata: { labels }, spec: { taints } }, 'taint'],
  ['all of them', { metadata: { labels, deletionTimestamp }, spec: { taints } }, 'beingDeleted'],
  ['cordoned: it goes on serving', { spec: { unschedulable: true } }, undefined],
])('a Node with %s', (_, changes, expected) => {
  expect(lbNode('node1', ['172.18.0.11'], changes).exclusion).toBe(expected);
});

test.each<[title: string, parts: RawServiceSpec, ours: boolean, concerns: boolean]>([
  ['type LoadBalancer', {}, true, true],
  ['our class', { spec: { loadBalancerClass: 'switchyard.dev/lb' } }, true, true],
  ['another class', { spec: { loadBalancerClass: 'example.com/x' } }, false, true],
  ['being deleted', { isBeingDeleted: true }, false, true],
  ['another type', { spec: { type: 'ClusterIP' } }, false, false],
  [
    'another type, and a finalizer left',
    { spec: { type: 'ClusterIP' }, metadata: { finalizers: ['x/y'] } },
    false,
    true,
  ],
  [
    'another type, and an address left',
    { spec: { type: 'ClusterIP' }, status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } } },
    false,
    true,
  ],
])('a Service: %s', (_, parts, ours, concerns) => {
  const service = lbService('default/web', parts);
  expect([isOurs(service), concernsLoadBalancers(service)]).toEqual([ours, concerns]);
});

describe('slices', () => {
  test('come without hints and trigger times, which mean nothing to a load balancer', () => {
    const raw = rawSlice('default/web', ['10.244.1.5@node1']);
    const [endpoint] = raw.endpoints ?? [];
    const hinted = {
      ...raw,
      metadata: {
        ...raw.metadata,
        annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': '2026-01-01T00:00:00Z' },
      },
      endpoints: [{ ...endpoint!, hints: { forZones: [{ name: 'a' }], forNodes: [{ name: 'node1' }] } }],
    };
    expect(newSliceProjection()(hinted)).toMatchObject({ record: lbSlice('default/web', ['10.244.1.5@node1']) });
  });
});
