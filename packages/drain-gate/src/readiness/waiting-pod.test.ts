import type { Pod } from '@switchyard/core/kubernetes';
import { expect, test } from 'vitest';
import { conditionRequest, conditionType, projectPod, type WaitingPod } from './waiting-pod.ts';

interface PodSpec {
  readonly gates?: readonly string[];
  readonly conditions?: Readonly<Record<string, string>>;
  readonly deletionTimestamp?: string;
}

function podOf({ gates = [conditionType], conditions = { ContainersReady: 'True' }, ...metadata }: PodSpec = {}): Pod {
  return {
    metadata: { namespace: 'shop', name: 'cart-1', uid: 'u1', ...metadata },
    spec: { containers: [], readinessGates: gates.map((gate) => ({ conditionType: gate })) },
    status: {
      podIPs: [{ ip: '10.244.1.5' }, { ip: 'fd00::5' }],
      conditions: Object.entries(conditions).map(([type, status]) => ({ type, status })),
    },
  };
}

test.each<readonly [string, PodSpec, 'record' | 'ignored']>([
  ['whose containers are ready waits', {}, 'record'],
  ['whose condition is False waits', { conditions: { ContainersReady: 'True', [conditionType]: 'False' } }, 'record'],
  ['without the gate does not', { gates: ['example.com/other'] }, 'ignored'],
  ['without gates does not', { gates: [] }, 'ignored'],
  ['whose containers are not ready does not', { conditions: { ContainersReady: 'False' } }, 'ignored'],
  ['without conditions does not', { conditions: {} }, 'ignored'],
  ['that is True does not', { conditions: { ContainersReady: 'True', [conditionType]: 'True' } }, 'ignored'],
  ['that ends does not', { deletionTimestamp: '2026-11-27T08:00:00Z' }, 'ignored'],
])('a pod %s', (_, spec, status) => {
  expect(projectPod(podOf(spec))).toMatchObject({ status, name: 'shop/cart-1' });
});

test('a waiting pod has its addresses and its condition', () => {
  const raw = podOf({ conditions: { ContainersReady: 'True', [conditionType]: 'False' } });
  expect(projectPod(raw)).toMatchObject({
    record: { addresses: ['10.244.1.5', 'fd00::5'], condition: { status: 'False', message: '' } },
  });
});

const waiting: WaitingPod = {
  key: 'shop/cart-1',
  namespace: 'shop',
  name: 'cart-1',
  uid: 'u1',
  addresses: [],
  condition: undefined,
};
const behind = { status: 'False', reason: 'NodesBehind', message: 'node n2 ...' } as const;
const now = new Date('2026-11-27T08:00:00.123Z');

test('the first condition has the time of its transition, the next message keeps that', () => {
  expect(conditionRequest(waiting, behind, now)).toEqual({
    method: 'PATCH',
    path: '/api/v1/namespaces/shop/pods/cart-1/status',
    headers: { 'content-type': 'application/strategic-merge-patch+json' },
    body: {
      metadata: { uid: 'u1' },
      status: { conditions: [{ type: conditionType, ...behind, lastTransitionTime: '2026-11-27T08:00:00Z' }] },
    },
  });
  const known = { ...waiting, condition: { status: 'False', message: 'node n3 ...' } };
  expect(conditionRequest(known, behind, now).body).toMatchObject({
    status: { conditions: [{ type: conditionType, ...behind }] },
  });
  expect(JSON.stringify(conditionRequest(known, behind, now))).not.toContain('lastTransitionTime');
});
