import { apiResources, type Deployment, type EndpointSlice, type Pod, type Service } from '@switchyard/core/kubernetes';
import { ManualClock } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { startTestCluster, type TestCluster } from '../../support/cluster.ts';
import type { MemoryApi } from '../../support/memory-api.ts';
import { readRollout, type RecordedRollout } from '../../support/rollout-fixture.ts';

const signal = new AbortController().signal;
const kinds = [1, 2] as const;

test.each(kinds)('with %i replicas, the Deployment goes through the recorded statuses', async (replicas) => {
  const recorded = readRollout(replicas);
  await using cluster = await play(recorded);
  const expected = recorded.events.filter(({ kind, type }) => kind === 'Deployment' && type !== 'DELETED');
  const actual = cluster.api.events.filter(({ resource, type }) => resource === 'deployments' && type !== 'DELETED');
  const wanted = distinct(expected.map(({ object }) => summary(object as Deployment)));
  expect(wanted.length).toBe(replicas === 1 ? 16 : 22);
  expect(distinct(actual.map(({ object }) => summary(object as Deployment)))).toEqual(wanted);
});

test.each(kinds)('with %i replicas, the slices go through the recorded conditions', async (replicas) => {
  const recorded = readRollout(replicas);
  await using cluster = await play(recorded);
  const slices = recorded.events.filter(({ kind }) => kind === 'EndpointSlice');
  // Two pods marked within 4 ms gave two writes there; here they may be joined.
  const expected = slices
    .filter(({ atMs }, index) => (slices[index + 1]?.atMs ?? Infinity) - atMs > 5)
    .map(({ object }) => object);
  expect(slices.length - expected.length).toBe(replicas - 1);
  const actual = cluster.api.events.filter(({ resource }) => resource === 'endpointslices').map(({ object }) => object);
  expect(distinct(actual.map((object) => conditions(object as EndpointSlice)))).toEqual(
    distinct(expected.map((object) => conditions(object as EndpointSlice))),
  );
});

test.each(kinds)(
  'with %i replicas, a slice shows the new pod ready before an old pod is terminating',
  async (replicas) => {
    await using cluster = await play(readRollout(replicas));
    const { events } = cluster.api;
    const marked = events.flatMap(({ resource, type, object }, index) => {
      const { deletionTimestamp, deletionGracePeriodSeconds } = object.metadata;
      const isMarked = resource === 'pods' && type === 'MODIFIED' && deletionGracePeriodSeconds === 30;
      const isRunning = (object as Pod).status?.conditions?.some(
        ({ type: name, status }) => name === 'Ready' && status === 'True',
      );
      return isMarked && isRunning && deletionTimestamp !== undefined ? [index] : [];
    });
    expect(marked.length).toBe(2 * replicas);
    for (const [order, index] of marked.slice(0, replicas).entries()) {
      const before = events.slice(0, index).findLast(({ resource }) => resource === 'endpointslices');
      const slice = before?.object as EndpointSlice | undefined;
      const ready = slice?.endpoints?.filter((endpoint) => endpoint.conditions?.ready);
      expect(ready?.length, `ready endpoints before old pod ${order + 1} goes`).toBe(replicas + 1);
    }
  },
);

test.each(kinds)(
  'with %i replicas, nothing is left after the Deployment and its Service are deleted',
  async (replicas) => {
    await using cluster = await play(readRollout(replicas));
    const left = new Set<string>();
    for (const { type, resource, object } of cluster.api.events) {
      if (type === 'DELETED') left.delete(`${resource}/${object.metadata.name}`);
      else left.add(`${resource}/${object.metadata.name}`);
    }
    expect([...left]).toEqual([]);
  },
);

/** Does what the recorded steps say, each at its time, and lets the controllers react in between. */
async function play(recorded: RecordedRollout): Promise<TestCluster> {
  const first = recorded.events.find(({ kind }) => kind === 'Deployment')?.object as Deployment;
  const start = Date.parse(first.metadata.creationTimestamp!);
  const clock = new ManualClock(start);
  const cluster = await startTestCluster(clock);
  const names = recorded.events.filter(({ kind, type }) => kind === 'Pod' && type === 'ADDED').map(nameOf);
  const made: string[] = [];
  for (const { atMs, step } of recorded.steps) {
    await clock.advance(start + atMs - clock.now());
    await cluster.settle();
    for (const { resource, type, object } of cluster.api.events) {
      const name = object.metadata.name ?? '';
      if (resource === 'pods' && type === 'ADDED' && !made.includes(name)) made.push(name);
    }
    const ours = (theirs: string): string => made[names.indexOf(theirs)] ?? `no pod for ${theirs}`;
    await takeStep(step, { api: cluster.api, first, recorded, ours, atMs });
    await cluster.settle();
  }
  return cluster;
}

interface StepInput {
  readonly api: MemoryApi;
  readonly first: Deployment;
  readonly recorded: RecordedRollout;
  readonly ours: (theirs: string) => string;
  readonly atMs: number;
}

async function takeStep(step: string, { api, first, recorded, ours, atMs }: StepInput): Promise<void> {
  const { name = '', namespace = '' } = first.metadata;
  const deployment = { namespace, name };
  const [, theirs = ''] = /part: (?:bind )?([a-z0-9-]+)/.exec(step) ?? [];
  const pod = { namespace, name: theirs === '' ? '' : ours(theirs) };
  const then = recorded.events.find((event) => event.atMs >= atMs && event.kind === 'Pod' && nameOf(event) === theirs);
  const patch = (body: Record<string, unknown>) => ({ kind: 'merge', body }) as const;
  if (step.startsWith('create Service')) {
    await api.create(apiResources.services, serviceFor(first), signal);
    await api.create(apiResources.deployments, deploymentFrom(first), signal);
  } else if (step === 'kubectl rollout restart') {
    const body = { spec: { template: { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': 'now' } } } } };
    await api.patch(apiResources.deployments, deployment, patch(body), signal);
  } else if (step.startsWith('kubectl scale')) {
    await api.patch(apiResources.deployments, deployment, patch({ spec: { replicas: 0 } }), signal);
  } else if (step.startsWith('delete')) {
    await api.delete(apiResources.deployments, deployment, {}, signal);
    await api.delete(apiResources.services, deployment, {}, signal);
  } else if (step.startsWith("scheduler's part")) {
    await api.patch(apiResources.pods, pod, patch({ spec: { nodeName: 'node1' } }), signal);
  } else if (step.endsWith('gracePeriodSeconds 0')) {
    await api.delete(apiResources.pods, pod, { gracePeriodSeconds: 0 }, signal);
  } else if (step.startsWith("kubelet's part")) {
    const current = await api.get(apiResources.pods, pod, signal);
    const played = then?.object as Pod | undefined;
    await api.updateStatus(apiResources.pods, { ...current, status: played?.status ?? {} }, signal);
  } else throw new Error(`the recording has a step that this test does not know: ${step}`);
}

function deploymentFrom(first: Deployment): Deployment {
  const { name = '', namespace = '', labels = {} } = first.metadata;
  const container = { name: 'app', ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' as const }] };
  const template = { metadata: { labels }, spec: { terminationGracePeriodSeconds: 30, containers: [container] } };
  return { metadata: { name, namespace, labels }, spec: { ...first.spec!, template } };
}

function serviceFor(first: Deployment): Service {
  const { name = '', namespace = '', labels = {} } = first.metadata;
  const ports = [{ name: 'http', port: 80, targetPort: 'http' }];
  return { metadata: { name, namespace, labels }, spec: { selector: labels, ports, ipFamilies: ['IPv4'] } };
}

function nameOf({ object }: { readonly object: { readonly metadata: { readonly name?: string } } }): string {
  return object.metadata.name ?? '';
}

/** Without times and with every ReplicaSet name replaced: ours are not those of the real controller. */
function summary({ metadata, spec, status }: Deployment): unknown {
  const { conditions: listed = [], ...counters } = status ?? {};
  const shown = listed.map(({ type, status: value, reason, message }) => [
    type,
    value,
    reason,
    message?.replace(/"[^"]+"/, '"set"'),
  ]);
  return { generation: metadata.generation, replicas: spec?.replicas, counters, conditions: shown };
}

function conditions({ endpoints, ports }: EndpointSlice): unknown {
  const shown = (endpoints ?? []).map(({ addresses, conditions: { ready, serving, terminating } = {} }) =>
    [addresses[0], ready, serving, terminating].join(' '),
  );
  return { endpoints: shown, ports };
}

/** Consecutive equal ones are one: only an annotation or a time has changed. */
function distinct(values: readonly unknown[]): readonly unknown[] {
  return values.filter((value, index) => JSON.stringify(value) !== JSON.stringify(values[index - 1]));
}
