import { type IpAddress, parseIp } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  type AgentMode,
  agentModes,
  type ApiServer,
  createProber,
  type LabCluster,
  type LabNode,
  type Prober,
  startCluster,
  startEchoServer,
  waitForAgents,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

// Addresses as API servers stored them before strict validation (KEP-4858). They are those of canonical spelling.

const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
const metadata = { name: 'legacy', namespace: 'default' };
const external: IpAddress = parseIp('198.51.100.9');
const balanced: IpAddress = parseIp('198.51.100.10');
let cluster: LabCluster;
let node: LabNode;
let clusterIp = '';
let inPod: Prober;
let self: Prober;
let outside: Prober;

beforeAll(async () => {
  cluster = stack.use(await startCluster({ name: 'stored', nodes: 1, ipFamilies: ['IPv4'] }, signal));
  const { lab } = cluster;
  [node] = lab.nodes as [LabNode];
  await lab.routeToNode([external, balanced], node);
  const pod = await lab.addPod(node, 'echo');
  startEchoServer(pod, { pod: 'here', tcp: [8080] });
  inPod = stack.use(await createProber(await lab.addPod(node, 'caller'), signal));
  self = stack.use(await createProber(node, signal));
  outside = stack.use(await createProber(lab.client, signal));
  await createObjects(pod.addresses.IPv4!);
});

afterAll(() => stack.disposeAsync());

async function createObjects(address: string): Promise<void> {
  const { api, server } = cluster;
  const written: StoreEvent[] = [];
  using _ = server.store.subscribe(undefined, (event) => written.push(event));
  const ports = [{ name: 'http', port: 80, protocol: 'TCP' as const }];
  const type = 'LoadBalancer' as const;
  const spec = { type, externalIPs: [external], loadBalancerSourceRanges: ['172.18.0.0/16'], ports };
  const made = await api.create(apiResources.services, { metadata, spec }, signal);
  clusterIp = made.spec?.clusterIP ?? '';
  await api.updateStatus(
    apiResources.services,
    { ...made, status: { loadBalancer: { ingress: [{ ip: balanced }] } } },
    signal,
  );
  respell(written, [
    [clusterIp, padded(clusterIp)],
    [external, padded(external)],
    [balanced, `::ffff:${balanced}`],
    ['172.18.0.0/16', '172.018.000.000/16'],
  ]);
  const slice = {
    metadata: { ...metadata, labels: { 'kubernetes.io/service-name': metadata.name } },
    addressType: 'IPv4' as const,
    ports: [{ ...ports[0], port: 8080 }],
    endpoints: [{ addresses: [address], nodeName: node.nodeName, conditions: { ready: true } }],
  };
  await api.create(apiResources.endpointSlices, slice, signal);
  respell(written, [[address, padded(address)]]);
}

type StoreEvent = Parameters<Parameters<ApiServer['store']['subscribe']>[1]>[0];

/** Stores the object that was written last with other spellings, past the API server's validation. */
function respell(written: readonly StoreEvent[], spellings: readonly (readonly [string, string])[]): void {
  const own = written.findLast(({ next }) => JSON.stringify(next?.value).includes(`"name":"${metadata.name}"`));
  if (own?.next === undefined) throw new Error('nothing was written');
  let text = JSON.stringify(own.next.value);
  for (const [canonical, other] of spellings) {
    expect(text).toContain(`"${canonical}"`);
    text = text.replaceAll(`"${canonical}"`, `"${other}"`);
  }
  cluster.server.store.put(own.resource, JSON.parse(text));
}

/** `10.96.7.1` as `010.096.007.001`. */
function padded(address: string): string {
  return address
    .split('.')
    .map((part) => part.padStart(3, '0'))
    .join('.');
}

async function answers(): Promise<readonly string[]> {
  const asked: readonly (readonly [Prober, string])[] = [
    [inPod, clusterIp],
    [self, clusterIp],
    [inPod, external],
    [outside, external],
    [outside, balanced],
  ];
  return Promise.all(
    asked.map(async ([from, address]) => {
      const answer = await from.probe({ protocol: 'tcp', address, port: 80 });
      return 'by' in answer ? (answer.by ?? '') : answer.status;
    }),
  );
}

describe.each(agentModes)('in the %s mode', (proxyMode: AgentMode) => {
  test('leading zeros and IPv4-mapped addresses are served as the addresses that they mean', async () => {
    const agent = cluster.startAgent(node, { proxyMode });
    await waitForAgents(cluster.lab, [agent], signal);
    await expect.poll(answers).toEqual(['here', 'here', 'here', 'here', 'here']);
    const stored = await cluster.api.get(apiResources.services, metadata, signal);
    expect(stored.spec?.clusterIP).toBe(padded(clusterIp));
    process.kill(agent.pid, 'SIGTERM');
    await agent.ended;
  });
});
