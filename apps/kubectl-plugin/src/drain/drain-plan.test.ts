import type { Pod, Service } from '@switchyard/core/kubernetes';
import { expect, test } from 'vitest';
import { isOwnedBy, isReady, planDrain, takeLabels } from './drain-plan.ts';

interface Spec {
  readonly owner?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly hook?: object;
  readonly phase?: string;
  readonly deleted?: boolean;
  readonly emptyDir?: boolean;
}

const hashed = { app: 'web', 'pod-template-hash': 'abc' };
const gateHook = { exec: { command: ['sh', '-c', 'wget "http://gate:10247/drain?pod=$POD_IP"'] } };

function pod(name: string, spec: Spec = {}): Pod {
  const [kind = 'ReplicaSet', owner = 'web-abc'] = (spec.owner ?? 'ReplicaSet/web-abc').split('/');
  return {
    metadata: {
      name,
      namespace: 'shop',
      labels: spec.labels ?? hashed,
      ...(spec.owner === ''
        ? {}
        : { ownerReferences: [{ apiVersion: 'v1', uid: 'u', kind, name: owner, controller: true }] }),
      ...(spec.deleted === true ? { deletionTimestamp: '2026-11-27T05:00:00Z' } : {}),
    },
    spec: {
      containers: [{ name: 'app', ...(spec.hook === undefined ? {} : { lifecycle: { preStop: spec.hook } }) }],
      volumes: spec.emptyDir === true ? [{ name: 'data', emptyDir: {} }] : [],
    },
    status: { phase: spec.phase ?? 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  };
}

const web: Service = { metadata: { name: 'web', namespace: 'shop' }, spec: { selector: { app: 'web' } } };
const local: Service = { ...web, spec: { ...web.spec, externalTrafficPolicy: 'Local' } };

test('a pod of a Deployment and a Service is replaced', () => {
  const { moves, unprotected, withData } = planDrain([pod('a')], [web]);
  expect(moves).toMatchObject([{ replicaSet: 'web-abc', isTaken: false, hasHook: false, serviceLabels: ['app'] }]);
  expect([unprotected, withData]).toEqual([[], []]);
});

test.each<readonly [string, Spec, readonly Service[], readonly [moves: number, unprotected: number]]>([
  ['of no Service is left to kubectl', {}, [], [0, 0]],
  ['of a Service in another namespace, too', {}, [{ ...web, metadata: { name: 'web', namespace: 'x' } }], [0, 0]],
  ['that a Service without selector cannot have, too', {}, [{ ...web, spec: {} }], [0, 0]],
  ['of a StatefulSet may lose', { owner: 'StatefulSet/web' }, [web], [0, 1]],
  ['of a StatefulSet with the hook does not', { owner: 'StatefulSet/web', hook: gateHook }, [web], [0, 0]],
  ['of a DaemonSet stays', { owner: 'DaemonSet/web' }, [web], [0, 0]],
  ['of a ReplicaSet without Deployment may lose', { labels: { app: 'web' } }, [web], [0, 1]],
  ['without an owner may lose', { owner: '', labels: { app: 'web' } }, [web], [0, 1]],
  ['with another hook is replaced', { hook: { sleep: { seconds: 5 } } }, [web], [1, 0]],
  ['of a Service with policy Local may lose', {}, [local], [0, 1]],
  ['of a Service with policy Local and the hook is replaced', { hook: gateHook }, [local], [1, 0]],
  ['that has ended is left', { phase: 'Succeeded' }, [web], [0, 0]],
  ['that is deleted is left', { deleted: true }, [web], [0, 0]],
])('a pod %s', (_, spec, services, expected) => {
  const { moves, unprotected } = planDrain([pod('a', spec)], services);
  expect([moves.length, unprotected.length]).toEqual(expected);
});

test('a drain that was interrupted goes on, also after the pod left its Services', () => {
  const labels = { 'switchyard.dev/moved-from': 'web-abc' };
  const { moves } = planDrain(
    [pod('a', { owner: '', labels }), pod('b', { owner: '', labels: { ...labels, app: 'web' } })],
    [web],
  );
  expect(moves).toMatchObject([
    { replicaSet: 'web-abc', isTaken: true, serviceLabels: [] },
    { replicaSet: 'web-abc', isTaken: true, serviceLabels: ['app'] },
  ]);
});

test('the hook is known by its path, and data of an emptyDir by the volume', () => {
  const { moves, withData } = planDrain([pod('a', { hook: gateHook, emptyDir: true })], [web]);
  expect(moves).toMatchObject([{ hasHook: true }]);
  expect(withData.map(({ metadata }) => metadata.name)).toEqual(['a']);
});

test('a pod is taken from its ReplicaSet by its labels', () => {
  expect(takeLabels('web-abc')).toEqual({ 'pod-template-hash': null, 'switchyard.dev/moved-from': 'web-abc' });
  expect(isOwnedBy(pod('a'), 'web-abc')).toBe(true);
  expect(isOwnedBy(pod('a'), 'web-def')).toBe(false);
});

test('a pod that is deleted is not ready', () => {
  expect([isReady(pod('a')), isReady(pod('a', { deleted: true }))]).toEqual([true, false]);
});
