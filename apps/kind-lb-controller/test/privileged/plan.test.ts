import { apiResources, type ObjectClient } from '@switchyard/core/kubernetes';
import {
  createProber,
  type LabNode,
  type LabPod,
  type ProbeRequest,
  type Prober,
  startEchoServer,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EndpointText, rawSlice } from '../../src/testing/plan-input.ts';
import { createLoadBalancerLab, type LoadBalancerLab, localService, ports } from './load-balancer-lab.ts';
import { until } from '@switchyard/core/testing';

// Plans for EndpointSlices, tested with packets: Services without NodePorts reach pods, and nodes are drained before any
// check fails. Slices and Nodes are written by hand; checks are always answered with 200.
const { signal } = new AbortController();
const podPort = 8080;
let lbLab: LoadBalancerLab;
let api: ObjectClient;
let prober: Prober;
let pods: readonly LabPod[];

const answerers = async (request: ProbeRequest): Promise<string> => {
  const by = new Set<string>();
  for (let n = 0; n < 8; n++) {
    const result = await prober.probe({ timeout: 500, ...request });
    by.add(result.status === 'answered' ? `${result.by}` : result.status);
  }
  return [...by].sort().join(' ');
};
const answeredBy = (request: ProbeRequest, expected: string): Promise<string> =>
  until(`answers by ${expected}`, async () => {
    const by = await answerers(request);
    return by === expected ? by : undefined;
  });
const addressOf = (name: string): Promise<string> =>
  until(`the address of ${name}`, async () => {
    const { status } = await api.get(apiResources.services, { name }, signal);
    return (status as { loadBalancer?: { ingress?: readonly { ip: string }[] } } | undefined)?.loadBalancer
      ?.ingress?.[0]?.ip;
  });
const address = (index: number): string => pods[index]?.addresses.IPv4 ?? '';
const both = ['TCP', 'UDP'] as const;

/** The slice of a Service, with a port per protocol; made or replaced. */
async function setSlice(service: string, endpoints: readonly EndpointText[]): Promise<void> {
  const slice = rawSlice(`default/${service}`, endpoints);
  const portsOfSlice = both.map((protocol) => ({ name: protocol.toLowerCase(), port: podPort, protocol }));
  const object = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', ...slice, ports: portsOfSlice };
  const name = slice.metadata?.name ?? '';
  const existing = await api.list(apiResources.endpointSlices, {}, signal);
  if (existing.items.some(({ metadata }) => metadata.name === name)) {
    const body = { endpoints: slice.endpoints };
    await api.patch(apiResources.endpointSlices, { name }, { kind: 'merge', body }, signal);
  } else await api.create(apiResources.endpointSlices, object as never, signal);
}

beforeAll(async () => {
  lbLab = await createLoadBalancerLab('lbplan', signal);
  api = lbLab.api;
  prober = await createProber(lbLab.lab.client, signal);
  const addPod = async (node: LabNode, name: string): Promise<LabPod> => {
    const pod = await lbLab.lab.addPod(node, name);
    startEchoServer(pod, { pod: name, node: node.name, http: [podPort], udp: [podPort] });
    return pod;
  };
  pods = await Promise.all(lbLab.lab.nodes.map((node, index) => addPod(node, `pod${index + 1}`)));
  lbLab.startController(['--pool=172.18.0.200/29', '--health-check-interval=200ms']);
});
afterAll(async () => {
  await prober?.[Symbol.asyncDispose]();
  await lbLab?.[Symbol.asyncDispose]();
});

describe('a Service without NodePorts', () => {
  const http = async (): Promise<ProbeRequest> => ({ protocol: 'http', address: await addressOf('direct'), port: 80 });
  const udp = async (): Promise<ProbeRequest> => ({ protocol: 'udp', address: await addressOf('direct'), port: 80 });

  test('reaches its pods through their nodes, by TCP and UDP on the same port', async () => {
    await setSlice('direct', [`${address(0)}@node1`, `${address(1)}@node2`]);
    await api.create(
      apiResources.services,
      localService('direct', {
        allocateLoadBalancerNodePorts: false,
        ports: both.map((protocol) => ({ name: protocol.toLowerCase(), port: 80, targetPort: podPort, protocol })),
      } as never),
      signal,
    );
    await answeredBy(await http(), 'pod1 pod2');
    await answeredBy(await udp(), 'pod1 pod2');
    const { stdout: routes } = await lbLab.lab.loadBalancer.run('ip', ['route']);
    for (const { node, addresses } of pods) {
      expect(routes).toContain(`${addresses.IPv4} via ${node.addresses.IPv4} `);
    }
  });
  test('leaves a pod that terminates to those that are ready, and goes back to it when it is the last one', async () => {
    await setSlice('direct', [`${address(0)}@node1 terminating`, `${address(1)}@node2`]);
    await answeredBy(await http(), 'pod2');
    await answeredBy(await udp(), 'pod2');
    await setSlice('direct', [`${address(0)}@node1 terminating`, `${address(1)}@node2 unready`]);
    await answeredBy(await http(), 'pod1');
    await answeredBy(await udp(), 'pod1');
  });
  test('leaves the pods of a Node that is about to be removed', async () => {
    await setSlice('direct', [`${address(0)}@node1`, `${address(1)}@node2`]);
    await answeredBy(await http(), 'pod1 pod2');
    const taints = [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }];
    const setTaints = (value: unknown): Promise<unknown> =>
      api.patch(apiResources.nodes, { name: 'node1' }, { kind: 'merge', body: { spec: { taints: value } } }, signal);
    await setTaints(taints);
    await answeredBy(await http(), 'pod2');
    await setTaints(null);
    await answeredBy(await http(), 'pod1 pod2');
  });
});

test('fast drain takes a node out while its check is still good, unless it is the only one with a pod', async () => {
  const service = localService('drained');
  const annotations = { 'lb.switchyard.dev/fast-drain': 'true' };
  await setSlice('drained', [`${address(0)}@node1`, `${address(1)}@node2`]);
  const http = { ...service.spec?.ports?.[0], name: 'tcp' };
  const drained = {
    ...service,
    metadata: { ...service.metadata, annotations },
    spec: { ...service.spec, ports: [http] },
  };
  await api.create(apiResources.services, drained as never, signal);
  const request: ProbeRequest = { protocol: 'http', address: await addressOf('drained'), port: ports.port };
  await answeredBy(request, 'node1 node2');
  await setSlice('drained', [`${address(0)}@node1 terminating`, `${address(1)}@node2`]);
  await answeredBy(request, 'node2');
  await setSlice('drained', [`${address(0)}@node1 terminating`, `${address(1)}@node2 unready`]);
  await answeredBy(request, 'node1');
  await setSlice('drained', [`${address(0)}@node1 unready`, `${address(1)}@node2`]);
  await answeredBy(request, 'node2');
  const off = { metadata: { annotations: { 'lb.switchyard.dev/fast-drain': 'false' } } };
  await api.patch(apiResources.services, { name: 'drained' }, { kind: 'merge', body: off }, signal);
  await answeredBy(request, 'node1 node2');
});
