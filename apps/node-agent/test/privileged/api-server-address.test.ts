import { ipFamilies } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  type AgentMode,
  agentModes,
  createProber,
  type LabCluster,
  type LabNode,
  type LabPod,
  type Prober,
  startCluster,
  startEchoServer,
  waitForAgents,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LogLine, readLog, until } from './agent-log.ts';
import { askInside } from './http-client.ts';

// A Service claims the address and port of the API server. The agent must go on hearing it, in each mode.

const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
const warning = 'service claims an address of the API server; this address is not forwarded';
let cluster: LabCluster;
let node: LabNode;
let pod: LabPod;
let self: Prober;
let inPod: Prober;
let apiServer: URL;
let made = 0;

beforeAll(async () => {
  cluster = stack.use(await startCluster({ name: 'apiaddr', nodes: 1, ipFamilies }, signal));
  [node] = cluster.lab.nodes as [LabNode];
  apiServer = new URL(cluster.insideUrl);
  pod = await cluster.lab.addPod(node, 'echo');
  startEchoServer(pod, { pod: 'echo', tcp: [8080] });
  self = stack.use(await createProber(node, signal));
  inPod = stack.use(await createProber(await cluster.lab.addPod(node, 'caller'), signal));
});

afterAll(() => stack.disposeAsync());

const asked = (): { readonly protocol: 'tcp'; readonly address: string; readonly port: number } => ({
  protocol: 'tcp',
  address: apiServer.hostname,
  port: Number(apiServer.port),
});

/** A Service at the API server's port that leads to the echo server. */
async function createService(name: string, externalIps: readonly string[]): Promise<string> {
  const spec = { externalIPs: [...externalIps], ports: [{ name: 'http', port: Number(apiServer.port) }] };
  const service = await cluster.api.create(
    apiResources.services,
    { metadata: { name, namespace: 'default' }, spec },
    signal,
  );
  const slice = {
    metadata: { name, namespace: 'default', labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4' as const,
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' as const }],
    endpoints: [{ addresses: [pod.addresses.IPv4 ?? ''], nodeName: node.nodeName, conditions: { ready: true } }],
  };
  await cluster.api.create(apiResources.endpointSlices, slice, signal);
  return service.spec?.clusterIP ?? '';
}

/** Makes the agent connect anew, and waits until it forwards a Service that is created after that. */
async function expectContact(): Promise<void> {
  cluster.server.faults.endWatches('reset');
  const clusterIp = await createService(`late-${++made}`, []);
  await until(async () => {
    const answer = await self.probe({ protocol: 'tcp', address: clusterIp, port: Number(apiServer.port) });
    return 'by' in answer && answer.by === 'echo';
  });
}

/** Whether a connection to the API server's address reaches the echo server. */
async function isCaptured(from: Prober): Promise<boolean> {
  const answer = await from.probe(asked());
  return 'by' in answer && answer.by === 'echo';
}

describe.each(agentModes)('in the %s mode', (mode: AgentMode) => {
  test('a Service at the address of the API server does not cut the node off', async () => {
    const agent = cluster.startAgent(node, { proxyMode: mode });
    await waitForAgents(cluster.lab, [agent], signal);
    const warnings = async (): Promise<readonly LogLine[]> =>
      (await readLog(agent)).filter(({ msg }) => msg === warning);
    const external = `external-${mode}`;
    await createService(external, [apiServer.hostname]);
    await until(async () => (await warnings()).length === 1);
    expect(await isCaptured(self)).toBe(false);
    expect(await isCaptured(inPod)).toBe(false);
    await expectContact();

    const balanced = `balanced-${mode}`;
    await createService(balanced, []);
    const status = { loadBalancer: { ingress: [{ ip: apiServer.hostname, ipMode: 'VIP' as const }] } };
    const service = await cluster.api.get(apiResources.services, { namespace: 'default', name: balanced }, signal);
    await cluster.api.updateStatus(apiResources.services, { ...service, status }, signal);
    await until(async () => (await warnings()).length === 2);
    expect(await isCaptured(self)).toBe(false);
    await expectContact();

    const address = `${apiServer.hostname}:${apiServer.port}`;
    expect(await warnings()).toMatchObject([
      { service: `default/${external}:http/TCP`, addresses: [address] },
      { service: `default/${balanced}:http/TCP`, addresses: [address] },
    ]);
    const query = `from=${node.addresses.IPv4}&to=${address}`;
    expect((await askInside(node, `/debug/explain?${query}`)).body).toContain('is an address of the API server');
    const events = await (await fetch(`${cluster.url}/apis/events.k8s.io/v1/events`)).text();
    for (const name of [external, balanced]) {
      expect(events).toContain(`default/${name}:http/TCP claims ${address}, where this node reaches the API server`);
      await cluster.api.delete(apiResources.services, { namespace: 'default', name }, {}, signal);
    }
    process.kill(agent.pid, 'SIGTERM');
    await agent.ended;
  });
});
