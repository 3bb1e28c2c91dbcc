import { apiResources, type Deployment, type Pod } from '@switchyard/core/kubernetes';
import { ManualClock } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { startTestCluster, type TestCluster } from '../../support/cluster.ts';

const signal = new AbortController().signal;
const ref = { namespace: 'default', name: 'web' };
type Spec = NonNullable<Deployment['spec']>;

test('a Deployment makes pods with its hash as label and in their names', async () => {
  await using cluster = await startTestCluster(new ManualClock());
  await cluster.api.create(apiResources.deployments, deployment({ replicas: 2 }), signal);
  await cluster.settle();
  const made = pods(cluster);
  expect(made.length).toBe(2);
  for (const { metadata } of made) {
    const hash = metadata.labels?.['pod-template-hash'];
    expect(metadata.name).toMatch(new RegExp(`^web-${hash}-[b-z2-9]{5}$`));
    expect(metadata.ownerReferences?.map(({ kind, name, controller }) => [kind, name, controller])).toEqual([
      ['Deployment', 'web', true],
    ]);
  }
});

test('refused writes are retried until the state is right', async () => {
  const clock = new ManualClock();
  await using cluster = await startTestCluster(clock);
  cluster.api.refuseWrites(apiResources.deployments, 3);
  await cluster.api.create(apiResources.deployments, deployment({}), signal);
  await clock.advance(1000);
  await cluster.settle();
  expect(pods(cluster).length).toBe(1);
  expect(status(cluster).observedGeneration).toBe(1);
});

test('controllers that start anew write nothing when all is right, and go on where a rollout stood', async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const before = await startTestCluster(clock);
  const { api } = before;
  await api.create(apiResources.deployments, deployment({}), signal);
  await before.settle();
  await becomeReady(before, clock);
  await api.patch(apiResources.deployments, ref, { kind: 'merge', body: changedTemplate }, signal);
  await before.settle();
  await before[Symbol.asyncDispose]();
  const written = api.events.length;

  await using after = await startTestCluster(clock, { api });
  expect(api.events.slice(written)).toEqual([]);
  await becomeReady(after, clock);
  expect(pods(after).map(({ metadata }) => metadata.deletionTimestamp !== undefined)).toEqual([true, false]);
});

test('Recreate makes the new pods only when the old ones are gone', async () => {
  const clock = new ManualClock();
  await using cluster = await startTestCluster(clock);
  await cluster.api.create(
    apiResources.deployments,
    deployment({ replicas: 2, strategy: { type: 'Recreate' } }),
    signal,
  );
  await cluster.settle();
  await becomeReady(cluster, clock);
  await cluster.api.patch(apiResources.deployments, ref, { kind: 'merge', body: changedTemplate }, signal);
  await cluster.settle();
  const going = pods(cluster);
  expect(going.map(({ metadata }) => metadata.deletionGracePeriodSeconds)).toEqual([30, 30]);
  for (const { metadata } of going) {
    expect(pods(cluster).some((pod) => pod.metadata.deletionTimestamp === undefined)).toBe(false);
    await cluster.api.delete(apiResources.pods, { name: metadata.name! }, { gracePeriodSeconds: 0 }, signal);
    await cluster.settle();
  }
  expect(pods(cluster).map(({ metadata }) => metadata.deletionTimestamp)).toEqual([undefined, undefined]);
});

test('a pod counts as available after minReadySeconds, on the time scale', async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 1) + 900);
  await using cluster = await startTestCluster(clock, { timeScale: 0.1 });
  await cluster.api.create(apiResources.deployments, deployment({ minReadySeconds: 10 }), signal);
  await cluster.settle();
  await becomeReady(cluster, clock);
  await clock.advance(990);
  await cluster.settle();
  expect([status(cluster).readyReplicas, status(cluster).availableReplicas]).toEqual([1, undefined]);
  await clock.advance(20);
  await cluster.settle();
  expect(status(cluster).availableReplicas).toBe(1);
});

test('a rollout that stands still is reported after progressDeadlineSeconds', async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  await using cluster = await startTestCluster(clock);
  await cluster.api.create(apiResources.deployments, deployment({ progressDeadlineSeconds: 5 }), signal);
  await cluster.settle();
  const reason = (): string | undefined =>
    status(cluster).conditions?.find(({ type }) => type === 'Progressing')?.reason;
  await clock.advance(5000);
  await cluster.settle();
  expect(reason()).toBe('ReplicaSetUpdated');
  await clock.advance(1100);
  await cluster.settle();
  expect(reason()).toBe('ProgressDeadlineExceeded');
});

test('a paused Deployment follows replicas but not its template', async () => {
  const clock = new ManualClock();
  await using cluster = await startTestCluster(clock);
  await cluster.api.create(apiResources.deployments, deployment({ replicas: 2 }), signal);
  await cluster.settle();
  const spec = { paused: true, replicas: 1, ...changedTemplate.spec };
  await cluster.api.patch(apiResources.deployments, ref, { kind: 'merge', body: { spec } }, signal);
  await cluster.settle();
  const old = pods(cluster);
  expect(old.length).toBe(1);
  await cluster.api.patch(apiResources.deployments, ref, { kind: 'merge', body: { spec: { paused: null } } }, signal);
  await cluster.settle();
  const hashes = new Set(pods(cluster).map(({ metadata }) => metadata.labels?.['pod-template-hash']));
  expect(hashes.size).toBe(2);
});

const changedTemplate = { spec: { template: { metadata: { annotations: { restarted: 'now' } } } } };

function deployment(spec: Partial<Spec>): Deployment {
  const labels = { app: 'web' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c' }] } };
  return { metadata: ref, spec: { replicas: 1, selector: { matchLabels: labels }, template, ...spec } };
}

function pods(cluster: TestCluster): readonly Pod[] {
  return cluster.api.objects(apiResources.pods);
}

function status(cluster: TestCluster): NonNullable<Deployment['status']> {
  return cluster.api.objects(apiResources.deployments)[0]?.status ?? {};
}

/** Scheduler and kubelet for all pods that wait: bound, then seen unready, then ready. */
async function becomeReady(cluster: TestCluster, clock: ManualClock): Promise<void> {
  for (const { metadata, spec } of pods(cluster)) {
    if (spec?.nodeName !== undefined) continue;
    const lastTransitionTime = `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
    const target = { name: metadata.name! };
    await cluster.api.patch(apiResources.pods, target, { kind: 'merge', body: { spec: { nodeName: 'n1' } } }, signal);
    const current = await cluster.api.get(apiResources.pods, target, signal);
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime } as const];
    await cluster.api.updateStatus(apiResources.pods, { ...current, status: { phase: 'Running', conditions } }, signal);
  }
  await cluster.settle();
}
