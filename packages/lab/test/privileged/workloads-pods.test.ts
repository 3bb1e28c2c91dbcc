import { existsSync } from 'node:fs';
import { apiResources, type Container, type Pod } from '@switchyard/core/kubernetes';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type WorkloadEvent } from '../../src/index.ts';
import { until } from '@switchyard/core/testing';
import { type LabCluster, startLabCluster } from '../support/lab-cluster.ts';

const { signal } = new AbortController();
let cluster: LabCluster;

beforeAll(async () => {
  cluster = await startLabCluster({ name: 'wpods', nodes: 2, timeScale: 0.05 }, signal);
});

afterAll(async () => {
  const { complaints } = cluster;
  await cluster[Symbol.asyncDispose]();
  expect(complaints).toEqual([]);
});

test('the lab nodes are registered with addresses, zone and pod CIDRs, once', async () => {
  const { items } = await cluster.api.list(apiResources.nodes, {}, signal);
  expect(
    items.map(({ metadata, spec, status }) => [
      metadata.name,
      metadata.labels?.['topology.kubernetes.io/zone'],
      spec?.podCIDRs?.length,
      status?.addresses?.[0]?.address,
      status?.conditions?.map(({ type, status: value }) => `${type} ${value}`),
    ]),
  ).toEqual([
    ['node1', 'zone-a', 2, '172.18.0.11', ['Ready True']],
    ['node2', 'zone-b', 2, '172.18.0.12', ['Ready True']],
  ]);
});

test('preStop delays SIGTERM, SIGKILL ends what ignores it at the end of the grace period', async () => {
  const stubborn = 'trap "" TERM; while :; do sleep 0.05; done';
  await create(
    'stubborn',
    {
      command: ['bash', '-c', stubborn],
      lifecycle: { preStop: { exec: { command: ['sh', '-c', 'sleep 10'] } } },
    },
    { terminationGracePeriodSeconds: 20 },
  );
  const pod = await running('stubborn');
  await cluster.api.delete(apiResources.pods, { name: 'stubborn' }, {}, signal);
  await gone('stubborn');
  const at = times(pod);
  // 10 s and 20 s on a scale of 0.05.
  expect(at('sigtermSent') - at('deletionTimestampSet')).toBeGreaterThan(490);
  expect(at('sigtermSent') - at('deletionTimestampSet')).toBeLessThan(800);
  expect(at('processEnded') - at('deletionTimestampSet')).toBeGreaterThan(990);
  expect(at('processEnded') - at('deletionTimestampSet')).toBeLessThan(1400);
  expect(eventsOf(pod).find((event) => event.kind === 'processEnded')).toMatchObject({ result: 'SIGKILL' });
});

test('a grace period can be shortened while it runs, and --force ends the process at once', async () => {
  const command = ['bash', '-c', 'trap "" TERM; while :; do sleep 0.05; done'];
  await create('slow', { command }, { terminationGracePeriodSeconds: 2000 });
  await create('forced', { command }, { terminationGracePeriodSeconds: 2000 });
  const [slow, forced] = [await running('slow'), await running('forced')];
  for (const name of ['slow', 'forced']) await cluster.api.delete(apiResources.pods, { name }, {}, signal);
  await until('SIGTERM', async () => eventsOf(slow).find(({ kind }) => kind === 'sigtermSent'));
  await cluster.api.delete(apiResources.pods, { name: 'slow' }, { gracePeriodSeconds: 10 }, signal);
  await cluster.api.delete(apiResources.pods, { name: 'forced' }, { gracePeriodSeconds: 0 }, signal);
  for (const pod of [slow, forced]) {
    await until('the process is gone', async () => !existsSync(`/proc/${pidOf(pod)}`));
    await until('the namespace is gone', async () => !hasNamespace(pod));
  }
});

test('a crashed process is started again: at once, then with back-off; a Service does not offer it meanwhile', async () => {
  await cluster.api.create(
    apiResources.services,
    {
      metadata: { name: 'crashing' },
      spec: { selector: { app: 'crashing' }, ports: [{ port: 80 }] },
    },
    signal,
  );
  await create('crashing', { command: ['bash', '-c', 'sleep 0.1; exit 3'] });
  const pod = await until('CrashLoopBackOff', async () => {
    const current = await cluster.api.get(apiResources.pods, { name: 'crashing' }, signal);
    const waiting = current.status?.containerStatuses?.[0]?.state?.['waiting'] as { reason?: string } | undefined;
    return waiting?.reason === 'CrashLoopBackOff' ? current : undefined;
  });
  expect(pod.status).toMatchObject({ phase: 'Running', containerStatuses: [{ restartCount: 1, ready: false }] });
  await until('the slice shows it unready', async () => {
    const labelSelector = 'kubernetes.io/service-name=crashing';
    const { items } = await cluster.api.list(apiResources.endpointSlices, { labelSelector }, signal);
    return items[0]?.endpoints?.[0]?.conditions?.ready === false;
  });
  const third = await until('a third start', async () => starts(pod)[2]);
  const [first = NaN, second = NaN] = starts(pod);
  expect(second - first).toBeLessThan(450);
  expect(third - second).toBeGreaterThan(500); // 10 s of back-off on a scale of 0.05
  await cluster.api.delete(apiResources.pods, { name: 'crashing' }, { gracePeriodSeconds: 1 }, signal);
  await gone('crashing');
});

test('with restartPolicy Never a pod that exits is Succeeded or Failed and leaves its slices', async () => {
  await create('once', { command: ['true'] }, { restartPolicy: 'Never' });
  await create('wrong', { command: ['bash', '-c', 'exit 7'] }, { restartPolicy: 'Never' });
  const phase = (name: string, wanted: string) =>
    until(`${name} is ${wanted}`, async () => {
      const { status } = await cluster.api.get(apiResources.pods, { name }, signal);
      return status?.phase === wanted ? status : undefined;
    });
  expect((await phase('once', 'Succeeded')).containerStatuses?.[0]?.state).toMatchObject({
    terminated: { exitCode: 0 },
  });
  expect((await phase('wrong', 'Failed')).containerStatuses?.[0]?.state).toMatchObject({ terminated: { exitCode: 7 } });
  for (const name of ['once', 'wrong']) {
    await cluster.api.delete(apiResources.pods, { name }, {}, signal);
    await gone(name);
  }
});

test('a pod that fits nowhere is Pending with a reason, and goes where room is made', async () => {
  const cordon = (name: string, unschedulable: boolean) =>
    cluster.api.patch(apiResources.nodes, { name }, { kind: 'merge', body: { spec: { unschedulable } } }, signal);
  await cordon('node1', true);
  await cordon('node2', true);
  await create('waiting', {});
  const condition = await until('a reason', async () => {
    const { status } = await cluster.api.get(apiResources.pods, { name: 'waiting' }, signal);
    return status?.conditions?.find(({ type }) => type === 'PodScheduled');
  });
  expect(condition).toMatchObject({
    status: 'False',
    reason: 'Unschedulable',
    message: '0/2 nodes are available: 2 node(s) were unschedulable.',
  });
  await cordon('node2', false);
  const pod = await running('waiting');
  expect(pod.spec?.nodeName).toBe('node2');
  expect(pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')?.status).toBe('True');
  await cordon('node1', false);
  await cluster.api.delete(apiResources.pods, { name: 'waiting' }, { gracePeriodSeconds: 1 }, signal);
  await gone('waiting');
});

test.each(['httpGet', 'tcpSocket', 'exec'] as const)('a %s probe decides about Ready', async (kind) => {
  const probe = {
    httpGet: { httpGet: { path: '/readyz', port: 'web' } },
    tcpSocket: { tcpSocket: { port: 8080 } },
    exec: { exec: { command: ['true'] } },
  }[kind];
  const never = {
    httpGet: { httpGet: { port: 9 } },
    tcpSocket: { tcpSocket: { port: 9 } },
    exec: { exec: { command: ['false'] } },
  }[kind];
  const ports = [{ name: 'web', containerPort: 8080 }];
  const name = `probe-${kind.toLowerCase()}`;
  await create(`${name}-bad`, { ports, readinessProbe: { ...never, periodSeconds: 1 } });
  await create(name, { ports, readinessProbe: { ...probe, periodSeconds: 1, timeoutSeconds: 10 } });
  await ready(name);
  expect(isReady(await running(`${name}-bad`))).toBe(false);
  for (const one of [name, `${name}-bad`]) {
    await cluster.api.delete(apiResources.pods, { name: one }, { gracePeriodSeconds: 1 }, signal);
    await gone(one);
  }
});

test('a dual-stack Service has a slice per family, named ports resolved, hints for its nodes; both go with it', async () => {
  await create('dual', { ports: [{ name: 'web', containerPort: 8080 }] });
  const pod = await ready('dual');
  const service = await cluster.api.create(
    apiResources.services,
    {
      metadata: { name: 'dual' },
      spec: {
        ipFamilyPolicy: 'RequireDualStack',
        trafficDistribution: 'PreferSameNode',
        selector: { app: 'dual' },
        ports: [{ port: 80, targetPort: 'web' }],
      },
    },
    signal,
  );
  const slices = async () => {
    const labelSelector = 'kubernetes.io/service-name=dual';
    return (await cluster.api.list(apiResources.endpointSlices, { labelSelector }, signal)).items;
  };
  const both = await until('two slices', async () => ((await slices()).length === 2 ? slices() : undefined));
  const shown = both.map(({ addressType, ports, endpoints }) => [
    addressType,
    ports?.[0]?.port,
    endpoints?.[0]?.addresses[0],
    endpoints?.[0]?.hints?.forNodes?.[0]?.name,
  ]);
  const ips = pod.status?.podIPs?.map(({ ip }) => ip) ?? [];
  const node = pod.spec?.nodeName;
  expect(shown.toSorted()).toEqual([
    ['IPv4', 8080, ips[0], node],
    ['IPv6', 8080, ips[1], node],
  ]);
  expect(both.every((slice) => slice.metadata.ownerReferences?.[0]?.uid === service.metadata.uid)).toBe(true);
  await cluster.api.delete(apiResources.services, { name: 'dual' }, {}, signal);
  await until('no slices', async () => (await slices()).length === 0);
  await cluster.api.delete(apiResources.pods, { name: 'dual' }, { gracePeriodSeconds: 1 }, signal);
  await gone('dual');
});

test('new workloads take up what the old ones left: same address, one restart more; what was terminating goes', async () => {
  await create('kept', {});
  await create('leaving', { command: ['sleep', '1000'] }, { terminationGracePeriodSeconds: 10_000 });
  const before = await ready('kept');
  const leaving = await running('leaving');
  await cluster.workloads[Symbol.asyncDispose]();
  expect([existsSync(`/proc/${pidOf(before)}`), existsSync(`/proc/${pidOf(leaving)}`)]).toEqual([false, false]);
  await cluster.api.delete(apiResources.pods, { name: 'leaving' }, {}, signal);

  await cluster.startWorkloads();
  await gone('leaving');
  const after = await until('a restart', async () => {
    const pod = await cluster.api.get(apiResources.pods, { name: 'kept' }, signal);
    return pod.status?.containerStatuses?.[0]?.restartCount === 1 && isReady(pod) ? pod : undefined;
  });
  expect([after.metadata.uid, after.status?.podIPs]).toEqual([before.metadata.uid, before.status?.podIPs]);
  await cluster.api.delete(apiResources.pods, { name: 'kept' }, { gracePeriodSeconds: 1 }, signal);
  await gone('kept');
});

type Spec = NonNullable<Pod['spec']> & { readonly restartPolicy?: string };

async function create(name: string, container: Partial<Container>, spec: Partial<Spec> = {}): Promise<void> {
  const pod: Pod = {
    metadata: { name, labels: { app: name } },
    spec: { containers: [{ name: 'c', image: 'echo', ...container }], ...spec },
  };
  await cluster.api.create(apiResources.pods, pod, signal);
}

function running(name: string): Promise<Pod> {
  return until(`${name} is Running`, async () => {
    const pod = await cluster.api.get(apiResources.pods, { name }, signal);
    return pod.status?.phase === 'Running' ? pod : undefined;
  });
}

function ready(name: string): Promise<Pod> {
  return until(`${name} is Ready`, async () => {
    const pod = await cluster.api.get(apiResources.pods, { name }, signal);
    return isReady(pod) ? pod : undefined;
  });
}

async function gone(name: string): Promise<void> {
  await until(
    `${name} is gone`,
    async () => (await cluster.api.find(apiResources.pods, { name }, signal)) === undefined,
  );
}

function isReady(pod: Pod): boolean {
  return pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}

function eventsOf(pod: Pod): readonly WorkloadEvent[] {
  return cluster.events.filter(({ uid }) => uid === pod.metadata.uid);
}

function times(pod: Pod): (kind: WorkloadEvent['kind']) => number {
  return (kind) => eventsOf(pod).find((event) => event.kind === kind)?.at ?? NaN;
}

function starts(pod: Pod): readonly number[] {
  return eventsOf(pod).flatMap((event) => (event.kind === 'processStarted' ? [event.at] : []));
}

function pidOf(pod: Pod): number {
  return eventsOf(pod).flatMap((event) => (event.kind === 'processStarted' ? [event.pid] : []))[0] ?? -1;
}

function hasNamespace(pod: Pod): boolean {
  return existsSync(`/run/netns/swy-wpods-${pod.metadata.name}.default`);
}
