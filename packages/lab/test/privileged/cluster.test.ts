import { readFile } from 'node:fs/promises';
import { ipFamilies } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { expect, test } from 'vitest';
import {
  createApiClient,
  createProber,
  type LabCluster,
  type LabNode,
  startCluster,
  zeroapp,
} from '../../src/index.ts';
import { labTraces } from './lab-traces.ts';

const { signal } = new AbortController();

test.each([
  { families: ipFamilies, inside: 'http://172.18.0.10:6443', clusterIp: /^10\.96\./ },
  { families: ['IPv6'] as const, inside: 'http://[fd00:172:18::10]:6443', clusterIp: /^fd00:10:96::/ },
])('a cluster of $families is usable from the machine and from inside, and leaves nothing behind', async (row) => {
  const steps: string[] = [];
  {
    await using cluster = await startCluster(
      { name: 'labclu', nodes: 2, ipFamilies: row.families, onProgress: (text) => steps.push(text) },
      signal,
    );
    expect(cluster.insideUrl).toBe(row.inside);
    expect(JSON.parse(await readFile(cluster.kubeconfig, 'utf8')).clusters[0].cluster.server).toBe(cluster.url);
    expect(JSON.parse(await readFile(cluster.insideKubeconfig, 'utf8')).clusters[0].cluster.server).toBe(row.inside);

    await using api = createApiClient({ url: cluster.url });
    const nodes = await api.list(apiResources.nodes, {}, signal);
    expect(
      nodes.items.map((node) => [node.metadata.name, node.spec?.podCIDRs, node.status?.addresses?.[0]?.address]),
    ).toEqual(
      cluster.lab.nodes.map((node) => [node.name, Object.values(node.podCidrs), Object.values(node.addresses)[0]]),
    );
    const { deployment, service } = zeroapp({ port: 8080 });
    await api.create(apiResources.deployments, deployment, signal);
    expect((await api.create(apiResources.services, service, signal)).spec?.clusterIP).toMatch(row.clusterIp);
    for await (const event of cluster.workloads.events(signal)) if (event.kind === 'podReady') break;

    const [pod] = (await api.list(apiResources.pods, {}, signal)).items;
    await using prober = await createProber(cluster.lab.nodes[0]!, signal);
    const answer = await prober.probe({ protocol: 'http', address: pod!.status!.podIP!, port: 8080 });
    expect(answer).toMatchObject({ status: 'answered', by: pod!.metadata.name, node: pod!.spec!.nodeName });

    const proxied = await fetch(`${cluster.url}/api/v1/namespaces/default/pods/${pod!.metadata.name}:8080/proxy/`);
    expect(await proxied.json()).toMatchObject({ pod: pod!.metadata.name, source: apiHostAddress(cluster) });

    const { hostname, port } = new URL(cluster.insideUrl);
    const address = hostname.replace(/[[\]]/g, '');
    for (const host of [cluster.lab.client, ...cluster.lab.nodes]) {
      await using inside = await createProber(host, signal);
      const version = await inside.probe({ protocol: 'http', address, port: Number(port), path: '/version' });
      expect(version).toMatchObject({ status: 'answered', httpStatus: 200 });
    }
  }
  expect(steps).toContain('controllers are running');
  expect(await labTraces('labclu')).toEqual([]);
});

test('a pod on the host network has its node and its addresses, and takes only its process along', async () => {
  await using cluster = await startCluster({ name: 'labhostn', nodes: 2, ipFamilies }, signal);
  const [node1, node2] = cluster.lab.nodes as [LabNode, LabNode];
  const container = { name: 'c', image: 'echo', ports: [{ containerPort: 8888 }] };
  const spec = { nodeName: node1.nodeName, hostNetwork: true, containers: [container] };
  await cluster.api.create(apiResources.pods, { metadata: { name: 'host' }, spec }, signal);
  const answer = (): Promise<Response> =>
    fetch(`${cluster.url}/api/v1/namespaces/default/pods/host:8888/proxy/`, { signal });
  await expect.poll(async () => (await answer()).status).toBe(200);
  expect(await (await answer()).json()).toMatchObject({ destination: node1.addresses.IPv4 });
  const pod = await cluster.api.get(apiResources.pods, { name: 'host' }, signal);
  expect(pod.status?.podIPs).toEqual(pod.status?.hostIPs);
  expect(pod.status?.podIPs).toEqual(Object.values(node1.addresses).map((ip) => ({ ip })));

  await cluster.api.delete(apiResources.pods, { name: 'host' }, { gracePeriodSeconds: 1 }, signal);
  await expect.poll(async () => (await answer()).status).toBe(404);
  await using prober = await createProber(node2, signal);
  const after = await prober.probe({ protocol: 'tcp', address: node1.addresses.IPv4!, port: 8888 });
  expect(after.status).toBe('refused');
});

test('with agents on all nodes a NodePort answers on each of them', async () => {
  await using cluster = await startCluster({ name: 'labagent', nodes: 2, ipFamilies }, signal);
  await cluster.startAgents({}, signal);
  const { deployment, service } = zeroapp({ externalTrafficPolicy: 'Cluster' });
  await cluster.api.create(apiResources.deployments, deployment, signal);
  const { spec } = await cluster.api.create(apiResources.services, service, signal);
  const port = spec!.ports![0]!.nodePort!;
  await using prober = await createProber(cluster.lab.client, signal);
  for (const node of cluster.lab.nodes) {
    const probe = (): ReturnType<typeof prober.probe> =>
      prober.probe({ protocol: 'http', address: node.addresses.IPv4!, port });
    await expect.poll(async () => (await probe()).status).toBe('answered');
    // The policy Cluster masquerades: the pod sees the node's own address.
    expect(await probe()).toMatchObject({ httpStatus: 200, seenSource: node.addresses.IPv4 });
  }
});

test('the error for an agent that ended names its node, its exit and the end of its log', async () => {
  await using cluster = await startCluster({ name: 'labfail', nodes: 1, ipFamilies }, signal);
  const starting = cluster.startAgents({ program: 'ls', args: ['/nonexistent'] }, signal);
  await expect(starting).rejects.toThrow(/the agent of node1 has ended with \d+; its log ends with:\n.*ls: /);
});

test('a start that is aborted half-way leaves nothing behind', async () => {
  const abort = new AbortController();
  const onProgress = (): void => abort.abort(new Error('enough'));
  const starting = startCluster({ name: 'labhalf', nodes: 1, ipFamilies, onProgress }, abort.signal);
  await expect(starting).rejects.toThrow('enough');
  expect(await labTraces('labhalf')).toEqual([]);
});

/** The pod sees the API server's host, and not the machine. */
function apiHostAddress({ lab }: LabCluster): string | undefined {
  return lab.apiServer.addresses.IPv4 ?? lab.apiServer.addresses.IPv6;
}
