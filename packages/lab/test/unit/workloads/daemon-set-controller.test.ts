import { apiResources, type DaemonSet, type Node, type Pod } from '@switchyard/core/kubernetes';
import { ManualClock } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { startTestCluster, type TestCluster } from '../../support/cluster.ts';

const signal = new AbortController().signal;
const ref = { namespace: 'default', name: 'web' };
const changedTemplate = { spec: { template: { metadata: { annotations: { restarted: 'now' } } } } };
type Rolling = { readonly maxSurge?: number; readonly maxUnavailable?: number };

test('a DaemonSet makes a pod on every node that its template fits, cordoned ones too, and on those that come later', async () => {
  await using cluster = await clusterOf({}, ['n1', 'n2']);
  await addNode(cluster, { metadata: { name: 'n3' }, spec: { taints: [{ key: 'gpu', effect: 'NoSchedule' }] } });
  await addNode(cluster, { metadata: { name: 'n4' }, spec: { unschedulable: true } });
  await addNode(cluster, { metadata: { name: 'n5', labels: { disk: 'hdd' } } });
  await cluster.settle();
  expect(pods(cluster).map(({ spec }) => spec?.nodeName)).toEqual(['n1', 'n2', 'n4']);
  const [first] = pods(cluster);
  expect(first?.metadata.name).toMatch(/^web-[b-z2-9]{5}$/);
  expect(first?.metadata.labels).toMatchObject({ app: 'web', 'controller-revision-hash': expect.any(String) });
  expect(first?.metadata.ownerReferences?.map(({ kind, name }) => [kind, name])).toEqual([['DaemonSet', 'web']]);
  expect(status(cluster)).toMatchObject({ desiredNumberScheduled: 3, currentNumberScheduled: 3, numberReady: 0 });
});

test("without surge a node is without a pod from the old one's end to the new one's start, one node at a time", async () => {
  await using cluster = await clusterOf({ maxUnavailable: 1 }, ['n1', 'n2']);
  await becomeReady(cluster);
  const [old, other] = pods(cluster);
  await restart(cluster);
  expect(pods(cluster).map(textOf)).toEqual(['n1 old leaving', 'n2 old']);
  await end(cluster, old!);
  expect(pods(cluster).map(textOf)).toEqual(['n2 old', 'n1 new']);
  await becomeReady(cluster);
  expect(pods(cluster).map(textOf)).toEqual(['n2 old leaving', 'n1 new']);
  await end(cluster, other!);
  await becomeReady(cluster);
  expect(pods(cluster).map(textOf)).toEqual(['n1 new', 'n2 new']);
  expect(status(cluster)).toMatchObject({ updatedNumberScheduled: 2, numberAvailable: 2, observedGeneration: 2 });
  expect(status(cluster).numberUnavailable).toBeUndefined();
});

test('with surge the new pod is ready before the old one on its node is deleted', async () => {
  await using cluster = await clusterOf({ maxSurge: 1, maxUnavailable: 0 }, ['n1', 'n2']);
  await becomeReady(cluster);
  await restart(cluster);
  expect(pods(cluster).map(textOf)).toEqual(['n1 old', 'n2 old', 'n1 new']);
  await becomeReady(cluster);
  expect(pods(cluster).map(textOf)).toEqual(['n1 old leaving', 'n2 old', 'n1 new', 'n2 new']);
  await becomeReady(cluster);
  const done = { desiredNumberScheduled: 2, numberAvailable: 2 };
  expect(status(cluster)).toMatchObject(done);
  expect(status(cluster).updatedNumberScheduled).toBeUndefined();
  for (const pod of pods(cluster)) if (textOf(pod).endsWith('leaving')) await end(cluster, pod);
  expect(status(cluster)).toMatchObject({ ...done, updatedNumberScheduled: 2 });
});

test('a new pod is available after minReadySeconds, on the time scale, and only then the next old one goes', async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  await using cluster = await clusterOf({ maxUnavailable: 1 }, ['n1', 'n2'], { clock, minReadySeconds: 10 });
  await becomeReady(cluster);
  await clock.advance(1001);
  await restart(cluster);
  await end(cluster, pods(cluster)[0]!);
  await becomeReady(cluster);
  await clock.advance(990);
  await cluster.settle();
  expect(pods(cluster).map(textOf)).toEqual(['n2 old', 'n1 new']);
  await clock.advance(20);
  await cluster.settle();
  expect(pods(cluster).map(textOf)).toEqual(['n2 old leaving', 'n1 new']);
});

async function clusterOf(
  rollingUpdate: Rolling,
  nodes: readonly string[],
  options: { readonly clock?: ManualClock; readonly minReadySeconds?: number } = {},
): Promise<TestCluster> {
  const { clock = new ManualClock(Date.UTC(2026, 0, 1)), minReadySeconds = 0 } = options;
  const cluster = await startTestCluster(clock, { timeScale: 0.1 });
  for (const name of nodes) await addNode(cluster, { metadata: { name } });
  const labels = { app: 'web' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c' }], nodeSelector: { disk: 'ssd' } } };
  const spec = { selector: { matchLabels: labels }, template, updateStrategy: { rollingUpdate }, minReadySeconds };
  await cluster.api.create(apiResources.daemonSets, { metadata: ref, spec } satisfies DaemonSet, signal);
  await cluster.settle();
  return cluster;
}

async function addNode(cluster: TestCluster, node: Node): Promise<void> {
  const metadata = { ...node.metadata, labels: { disk: 'ssd', ...node.metadata.labels } };
  await cluster.api.create(apiResources.nodes, { ...node, metadata }, signal);
}

async function restart(cluster: TestCluster): Promise<void> {
  await cluster.api.patch(apiResources.daemonSets, ref, { kind: 'merge', body: changedTemplate }, signal);
  await cluster.settle();
}

/** The kubelet for all pods that are not ready. */
async function becomeReady(cluster: TestCluster): Promise<void> {
  for (const pod of pods(cluster)) {
    if (pod.status?.phase === 'Running') continue;
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' } as const];
    await cluster.api.updateStatus(apiResources.pods, { ...pod, status: { phase: 'Running', conditions } }, signal);
  }
  await cluster.settle();
}

async function end(cluster: TestCluster, { metadata }: Pod): Promise<void> {
  await cluster.api.delete(apiResources.pods, { name: metadata.name! }, { gracePeriodSeconds: 0 }, signal);
  await cluster.settle();
}

function textOf({ metadata, spec }: Pod): string {
  const isNew = metadata.annotations?.['restarted'] !== undefined;
  return `${spec?.nodeName} ${isNew ? 'new' : 'old'}${metadata.deletionTimestamp === undefined ? '' : ' leaving'}`;
}

function pods(cluster: TestCluster): readonly Pod[] {
  return cluster.api.objects(apiResources.pods);
}

function status(cluster: TestCluster): NonNullable<DaemonSet['status']> {
  return cluster.api.objects(apiResources.daemonSets)[0]!.status!;
}
