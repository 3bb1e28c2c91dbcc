import { type Clock, HostError, millis } from '@switchyard/core';
import { exampleObjects } from '@switchyard/loss/testing';
import { expect, test } from 'vitest';
import type { Kubectl } from '../access/kubectl.ts';
import { recordRollout } from './record-rollout.ts';

const { deployments, service, nodes } = exampleObjects();
const deployment = { ...deployments[0]!, metadata: { ...deployments[0]!.metadata, generation: 1 } };
const pod = (name: string, more: object = {}) => ({ metadata: { name, ...more }, spec: {}, status: {} });
const objects = {
  namespace: 'shop',
  deployment,
  services: [service],
  pods: [pod('old')] as never,
  nodes,
  daemonSets: [],
  kubeProxyReplacement: undefined,
  hasGate: false,
};

/** A clock on which a sleep takes one turn of the event loop. */
function quickClock(): Clock {
  let now = 1_800_000_000_000;
  return {
    now: () => millis(now),
    monotonic: () => millis(now),
    sleep: async (duration, signal) => {
      await new Promise((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
      now += duration;
    },
  };
}

const status = { observedGeneration: 2, updatedReplicas: 1, replicas: 1, availableReplicas: 1 };
const rolled = { ...deployment, metadata: { ...deployment.metadata, generation: 2 }, status };

/** A kubectl that watches; `after`: events after `rollout restart`, by resource. */
function fakeKubectl(after: Readonly<Record<string, readonly unknown[]>>) {
  const calls: string[] = [];
  const restarted = Promise.withResolvers<void>();
  const before: Readonly<Record<string, readonly unknown[]>> = {
    'deployments.apps': [{ type: 'ADDED', object: { ...deployment, status: { ...status, observedGeneration: 1 } } }],
    pods: [{ type: 'ADDED', object: pod('old') }],
  };
  const kubectl: Kubectl = {
    run: async (args) => {
      calls.push(args.join(' '));
      if (args[0] === 'rollout') restarted.resolve();
      return '{"items":[]}';
    },
    start: () => Promise.reject(new Error('not used')),
    lines: async function* (args, signal) {
      const [, resource = ''] = args;
      for (const event of before[resource] ?? []) yield JSON.stringify(event);
      await restarted.promise;
      for (const event of after[resource] ?? []) yield JSON.stringify(event);
      if (after[resource] !== undefined) await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
  };
  return { kubectl, calls };
}

const options = { objects, agents: [], restart: true, load: undefined, limit: 60, warn: () => undefined };
const { signal } = new AbortController();
const gone = [
  { type: 'ADDED', object: pod('new') },
  { type: 'MODIFIED', object: pod('old', { deletionTimestamp: '2026-01-01T00:00:00Z' }) },
  { type: 'DELETED', object: pod('old') },
];
const change = { type: 'MODIFIED', object: rolled };

test('begins the rollout when the state before is known, and ends with the last old pod', async () => {
  const { kubectl, calls } = fakeKubectl({
    'deployments.apps': [change],
    pods: gone,
    'endpointslices.discovery.k8s.io': [],
  });
  const recording = await recordRollout({ ...options, kubectl, clock: quickClock() }, signal);
  expect(recording.end).toBeGreaterThanOrEqual(recording.begin);
  expect(recording.pods.map(({ name, removed }) => [name, removed !== undefined])).toEqual([
    ['old', true],
    ['new', false],
  ]);
  expect(calls).toEqual([
    'get endpointslices.discovery.k8s.io --selector=kubernetes.io/service-name in (web) --namespace=shop --output=json',
    'rollout restart deployments.apps/web --namespace=shop',
  ]);
});

test('a rollout whose old pod stays has no end', async () => {
  const pods = gone.slice(0, 2);
  const { kubectl } = fakeKubectl({ 'deployments.apps': [change], pods, 'endpointslices.discovery.k8s.io': [] });
  const { end, begin } = await recordRollout({ ...options, kubectl, clock: quickClock() }, signal);
  expect(end).toBeUndefined();
  expect(begin).toBeGreaterThan(1_800_000_000_000);
});

/** Records a rollout whose old pod stays; ^C after 20 s. */
async function interrupted(pods: readonly unknown[]) {
  const stop = new AbortController();
  const { kubectl } = fakeKubectl({
    'deployments.apps': [change],
    pods: gone.slice(0, 2),
    'endpointslices.discovery.k8s.io': [],
  });
  const clock = quickClock();
  const end = clock.now() + 20_000;
  const sleep: Clock['sleep'] = (duration, inner) => {
    if (clock.now() > end) stop.abort();
    return clock.sleep(duration, inner);
  };
  const asked = { ...options, objects: { ...objects, pods: pods as never }, kubectl, clock: { ...clock, sleep } };
  return recordRollout(asked, stop.signal);
}

test('^C ends a watch with the recording so far', async () => {
  expect(await interrupted([pod('old')])).toMatchObject({ end: undefined, pods: [{ name: 'old' }, { name: 'new' }] });
});

test('^C before the state is known leaves nothing to report', async () => {
  await expect(interrupted([pod('old'), pod('other')])).rejects.toThrow('aborted');
});

test('a pod that is removed before kubectl watches is left out', async () => {
  const { kubectl } = fakeKubectl({ 'deployments.apps': [change], pods: gone, 'endpointslices.discovery.k8s.io': [] });
  const pods = [...(objects.pods as readonly unknown[]), pod('removed')] as never;
  const asked = { ...options, objects: { ...objects, pods }, kubectl, clock: quickClock() };
  const { end, pods: seen } = await recordRollout(asked, signal);
  expect(end).toBeDefined();
  expect(seen.map(({ name }) => name)).toEqual(['old', 'new']);
});

test('a watch that ends is an error', async () => {
  const { kubectl } = fakeKubectl({ 'deployments.apps': [change], pods: gone.slice(0, 2) });
  const recording = recordRollout({ ...options, kubectl, clock: quickClock() }, signal);
  await expect(recording).rejects.toThrow(HostError);
  await expect(recording).rejects.toThrow(/endpointslices.* ended; begin again/);
});
