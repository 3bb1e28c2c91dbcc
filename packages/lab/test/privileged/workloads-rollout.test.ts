import { apiResources, type Deployment, type EndpointSlice, type Pod } from '@switchyard/core/kubernetes';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createProber, type WorkloadEvent, zeroapp } from '../../src/index.ts';
import { until } from '@switchyard/core/testing';
import { type LabCluster, startLabCluster } from '../support/lab-cluster.ts';

const { signal } = new AbortController();
const scale = 0.1;
let cluster: LabCluster;

beforeAll(async () => {
  cluster = await startLabCluster({ name: 'wload', nodes: 2, timeScale: scale }, signal);
});

afterAll(async () => {
  const { complaints } = cluster;
  await cluster[Symbol.asyncDispose]();
  expect(complaints).toEqual([]);
});

const restart = { spec: { template: { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': 'now' } } } } };
const ref = { namespace: 'default', name: 'zeroapp' };

test('a rollout of the example: conditions, order, places and times', async () => {
  const { api, lab, events } = cluster;
  const stop = new AbortController();
  const slices: EndpointSlice[] = [];
  const statuses: Deployment[] = [];
  const following = [
    collect(api.watch(apiResources.endpointSlices, {}, stop.signal), slices),
    collect(api.watch(apiResources.deployments, {}, stop.signal), statuses),
  ];
  const { deployment, service } = zeroapp();
  await api.create(apiResources.services, service, signal);
  await api.create(apiResources.deployments, deployment, signal);
  const old = await readyPod();
  await using prober = await createProber(lab.nodes[0]!, signal);
  const ask = (pod: Pod) => prober.probe({ protocol: 'http', address: pod.status!.podIP!, port: 8080, timeout: 500 });
  expect(await ask(old)).toMatchObject({ status: 'answered', by: old.metadata.name, node: old.spec?.nodeName });

  await api.patch(apiResources.deployments, ref, { kind: 'strategic', body: restart }, signal);
  const fresh = await readyPod(old.metadata.uid);
  await until('the old pod gets SIGTERM', async () => events.find(({ kind }) => kind === 'sigtermSent'));
  expect(await ask(old)).toMatchObject({ status: 'answered', by: old.metadata.name });
  await until('the old pod is gone', async () => (await cluster.pods()).length === 1);
  expect((await ask(old)).status).not.toBe('answered');
  expect(await ask(fresh)).toMatchObject({ status: 'answered', by: fresh.metadata.name });
  expect(fresh.spec?.nodeName).not.toBe(old.spec?.nodeName);

  const done = await until('the last status', async () => {
    const current = await api.get(apiResources.deployments, ref, signal);
    return current.status?.terminatingReplicas === 0 ? current : undefined;
  });
  expect(done.status).toMatchObject({ observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1 });
  stop.abort();
  await Promise.all(following);

  const ofOld = conditionsOf(slices, old);
  const ofNew = conditionsOf(slices, fresh);
  expect(ofOld).toEqual(['F F F', 'T T F', 'F T T', 'F F T', 'absent']);
  expect(ofNew).toEqual(['F F F', 'T T F']);
  const both = slices.find((slice) => conditionOf(slice, old) === 'F T T');
  expect(conditionOf(both!, fresh)).toBe('T T F');
  expect(reasons(statuses).slice(-5)).toEqual([
    '1/1/0 unavailable 1: NewReplicaSetCreated',
    '1/2/1 unavailable 1: ReplicaSetUpdated',
    '2/2/1 unavailable 0: ReplicaSetUpdated',
    '1/1/1 unavailable 0: NewReplicaSetAvailable',
    '1/1/1 unavailable 0: NewReplicaSetAvailable',
  ]);

  expect(kindsOf(events, old)).toEqual([
    'podCreated',
    'podScheduled',
    'processStarted',
    'podReady',
    'deletionTimestampSet',
    'sigtermSent',
    'acceptingStopped',
    'processEnded',
    'podUnready',
    'objectGone',
  ]);
  const at = (kind: WorkloadEvent['kind'], pod: Pod): number =>
    events.find((event) => event.kind === kind && event.uid === pod.metadata.uid)?.at ?? NaN;
  expect(at('podReady', fresh)).toBeLessThan(at('deletionTimestampSet', old));
  expect(at('sigtermSent', old) - at('deletionTimestampSet', old)).toBeLessThan(200);
  const served = at('acceptingStopped', old) - at('sigtermSent', old);
  expect(served).toBeGreaterThan(30_000 * scale - 100);
  expect(served).toBeLessThan(30_000 * scale + 1000);
});

async function readyPod(otherThan = ''): Promise<Pod> {
  return until('a ready pod', async () => {
    const pods = await cluster.pods();
    return pods.find(({ metadata, status }) => {
      const isReady = status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True');
      return metadata.uid !== otherThan && isReady === true;
    });
  });
}

async function collect<T>(
  events: AsyncIterable<{ readonly kind: string; readonly object?: T; readonly items?: readonly T[] }>,
  into: T[],
): Promise<void> {
  for await (const { object } of events) if (object !== undefined) into.push(object);
}

function conditionOf(slice: EndpointSlice, pod: Pod): string {
  const endpoint = slice.endpoints?.find(({ targetRef }) => targetRef?.uid === pod.metadata.uid);
  if (endpoint === undefined) return 'absent';
  const { ready, serving, terminating } = endpoint.conditions ?? {};
  return [ready, serving, terminating].map((value) => (value === true ? 'T' : 'F')).join(' ');
}

/** States of a pod in the slices of one family, from its first appearance, without repetitions. */
function conditionsOf(slices: readonly EndpointSlice[], pod: Pod): readonly string[] {
  const all = slices.filter(({ addressType }) => addressType === 'IPv4').map((slice) => conditionOf(slice, pod));
  const seen = all.slice(all.findIndex((text) => text !== 'absent'));
  return seen.filter((text, index) => text !== seen[index - 1]);
}

function kindsOf(events: readonly WorkloadEvent[], pod: Pod): readonly string[] {
  return events.filter(({ uid }) => uid === pod.metadata.uid).map(({ kind }) => kind);
}

function reasons(deployments: readonly Deployment[]): readonly string[] {
  return deployments.map(({ status }) => {
    const {
      availableReplicas = 0,
      replicas = 0,
      updatedReplicas = 0,
      unavailableReplicas = 0,
      conditions,
    } = status ?? {};
    const progress = conditions?.find(({ type }) => type === 'Progressing')?.reason ?? 'none';
    return `${availableReplicas}/${replicas}/${updatedReplicas} unavailable ${unavailableReplicas}: ${progress}`;
  });
}
