import { type IpAddress, parseIp } from '@switchyard/core';
import { apiResources, type EndpointSlice } from '@switchyard/core/kubernetes';
import {
  type AgentMode,
  agentModes,
  createProber,
  type LabCluster,
  type LabHost,
  type LabNode,
  type LabPod,
  type Prober,
  startCluster,
  startEchoServer,
  waitForAgents,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

// A load-balancer IP with ipMode Router that a host outside the cluster has, too. Without an endpoint on this node its packets
// must get there by the route.

const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
const vip: IpAddress = parseIp('198.51.100.7');
const name = 'cart';
const namespace = 'default';
const ports = [
  { name: 'http', port: 80, protocol: 'TCP' as const },
  { name: 'dns', port: 80, protocol: 'UDP' as const },
];
let cluster: LabCluster;
let node: LabNode;
let pod: LabPod;
const senders: Prober[] = [];

beforeAll(async () => {
  cluster = stack.use(await startCluster({ name: 'router', nodes: 1, ipFamilies: ['IPv4'] }, signal));
  const { lab } = cluster;
  [node] = lab.nodes as [LabNode];
  pod = await lab.addPod(node, 'echo');
  startEchoServer(pod, { pod: 'here', tcp: [8080], udp: [8080] });
  await ip(lab.client, 'address', 'add', `${vip}/32`, 'dev', 'lo');
  startEchoServer(lab.client, { pod: 'elsewhere', tcp: [80], udp: [80], host: vip });
  await ip(node, 'route', 'add', vip, 'via', lab.client.addresses.IPv4!);
  await ip(lab.client, 'route', 'add', node.podCidrs.IPv4!, 'via', node.addresses.IPv4!);
  // Both ways through the node: it sees whole connections.
  await ip(lab.loadBalancer, 'route', 'add', vip, 'via', node.addresses.IPv4!);
  await ip(lab.client, 'route', 'add', lab.loadBalancer.addresses.IPv4!, 'via', node.addresses.IPv4!);
  for (const host of [await lab.addPod(node, 'caller'), node, lab.loadBalancer]) {
    senders.push(stack.use(await createProber(host, signal)));
  }
  await createService();
});

afterAll(() => stack.disposeAsync());

async function ip(host: LabHost, ...args: readonly string[]): Promise<void> {
  expect(await host.run('ip', args)).toMatchObject({ exitCode: 0 });
}

async function createService(): Promise<void> {
  const { api } = cluster;
  const spec = { type: 'LoadBalancer' as const, loadBalancerSourceRanges: ['0.0.0.0/1', '128.0.0.0/1'], ports };
  const made = await api.create(apiResources.services, { metadata: { name, namespace }, spec }, signal);
  const status = { loadBalancer: { ingress: [{ ip: vip, ipMode: 'Router' }] } };
  await api.updateStatus(apiResources.services, { ...made, status }, signal);
  await api.create(apiResources.endpointSlices, slice(true), signal);
}

function slice(ready: boolean): EndpointSlice {
  return {
    metadata: { name, namespace, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: ports.map((port) => ({ ...port, port: 8080 })),
    endpoints: [{ addresses: [pod.addresses.IPv4!], nodeName: node.nodeName, conditions: { ready } }],
  };
}

async function setReady(ready: boolean): Promise<void> {
  const { metadata } = await cluster.api.get(apiResources.endpointSlices, { namespace, name }, signal);
  await cluster.api.update(apiResources.endpointSlices, { ...slice(ready), metadata }, signal);
}

/** Who answers a pod, the node and a host outside, by TCP and UDP. */
async function answers(): Promise<readonly string[]> {
  const asked = senders.flatMap((sender) =>
    (['tcp', 'udp'] as const).map(async (protocol) => {
      const answer = await sender.probe({ protocol, address: vip, port: 80 });
      return 'by' in answer ? (answer.by ?? '') : answer.status;
    }),
  );
  return Promise.all(asked);
}

async function expectAnswers(from: 'here' | 'elsewhere'): Promise<void> {
  await expect.poll(answers).toEqual(Array.from({ length: 6 }, () => from));
}

describe.each(agentModes)('in the %s mode', (proxyMode: AgentMode) => {
  test('an endpoint on this node answers; without one the packets follow the route', async () => {
    const args = ['--feature-gates=SwitchyardLoadBalancerIPModeRouter=true'];
    const agent = cluster.startAgent(node, { proxyMode, args });
    await waitForAgents(cluster.lab, [agent], signal);
    await setReady(true);
    await expectAnswers('here');
    await setReady(false);
    await expectAnswers('elsewhere');
    await setReady(true);
    await expectAnswers('here');
    process.kill(agent.pid, 'SIGTERM');
    await agent.ended;
  });
});
