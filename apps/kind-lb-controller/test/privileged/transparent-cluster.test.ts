import { fileURLToPath } from 'node:url';
import { ipFamilies } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  createProber,
  type LabCluster,
  type LabProcess,
  type Prober,
  type ProbeResult,
  startCluster,
  zeroapp,
} from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '@switchyard/core/testing';

// All of it together: an API server, a Deployment's pods, our node agents, the controller with its HAProxy and its kernel rules.
const { signal } = new AbortController();
const program = fileURLToPath(new URL('../../bin/switchyard-lb', import.meta.url));
const stack = new AsyncDisposableStack();
let cluster: LabCluster;
let client: Prober;
let controller: LabProcess;
let addresses: readonly string[];

interface Ingress {
  readonly ip: string;
  readonly ipMode: string;
}

beforeAll(async () => {
  cluster = stack.use(await startCluster({ name: 'lbdirect', nodes: 2, ipFamilies }, signal));
  client = stack.use(await createProber(cluster.lab.client, signal));
  await cluster.startAgents({}, signal);
  controller = cluster.lab.loadBalancer.spawn(program, [
    `--kubeconfig=${cluster.insideKubeconfig}`,
    `--run-directory=${cluster.lab.folder}/lb`,
    '--runtime=process',
    '--interface=eth0',
    '--pool=172.18.0.200/29',
    '--pool=fd00:172:18:0:200::/80',
    '--health-check-interval=200ms',
  ]);
});
afterAll(async () => {
  await controller?.stop();
  await stack.disposeAsync();
});

const probeAll = (): Promise<readonly ProbeResult[]> =>
  Promise.all(
    addresses.flatMap((address) =>
      Array.from({ length: 12 }, () => client.probe({ protocol: 'http', address, port: 80, timeout: 1000 })),
    ),
  );
/** Waits until all attempts are answered, by so many nodes. */
const answeredBy = (count: number): Promise<readonly ProbeResult[]> =>
  until(`answers by ${count} nodes`, async () => {
    const results = await probeAll();
    const nodes = new Set(results.map((result) => (result.status === 'answered' ? result.node : result.status)));
    return results.every(({ status }) => status === 'answered') && nodes.size === count ? results : undefined;
  });

/** The client's address as the pod saw it. */
function seenSource(result: ProbeResult): string | undefined {
  return result.status === 'answered' ? result.seenSource : result.status;
}

test('a Service on the transparent path gets addresses of mode VIP, and its pods see the client itself', async () => {
  const { deployment, service } = zeroapp({ name: 'direct', replicas: 2, delayShutdown: 0 });
  const metadata = { ...service.metadata, annotations: { 'lb.switchyard.dev/path': 'transparent' } };
  const spec = { ...service.spec, ipFamilyPolicy: 'RequireDualStack' };
  await cluster.api.create(apiResources.deployments, deployment, signal);
  await cluster.api.create(apiResources.services, { ...service, metadata, spec } as never, signal);
  const ingress = await until('two addresses', async () => {
    const found = (await cluster.api.get(apiResources.services, { name: 'direct' }, signal)) as
      | { readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly Ingress[] } } }
      | undefined;
    const all = found?.status?.loadBalancer?.ingress ?? [];
    return all.length === 2 ? all : undefined;
  });
  expect(ingress.map(({ ipMode }) => ipMode)).toEqual(['VIP', 'VIP']);
  addresses = ingress.map(({ ip }) => ip);
  const own = Object.values(cluster.lab.client.addresses);
  for (const result of await answeredBy(2)) expect(own).toContain(seenSource(result));
});

test('a node without a ready pod gets no more connections, by its own health check, and gets them again', async () => {
  const scale = (replicas: number): Promise<unknown> =>
    cluster.api.patch(
      apiResources.deployments,
      { name: 'direct' },
      { kind: 'merge', body: { spec: { replicas } } },
      signal,
    );
  await scale(1);
  await answeredBy(1);
  await scale(2);
  await answeredBy(2);
});
