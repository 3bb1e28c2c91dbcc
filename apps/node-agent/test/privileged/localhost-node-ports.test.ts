import { type IpFamily, ipFamilies } from '@switchyard/core';
import { apiResources, type EndpointSlice } from '@switchyard/core/kubernetes';
import {
  createProber,
  type LabCluster,
  type LabNode,
  type LabPod,
  type LabProcess,
  type Prober,
  type ProbeResult,
  startCluster,
  startEchoServer,
} from '@switchyard/lab';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readLog, until } from './agent-log.ts';
import { askInside } from './http-client.ts';

// NodePorts on the loopback addresses of a node, reached by processes of the node itself (KEP-6032).

const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
const loopback = { IPv4: '127.0.0.1', IPv6: '::1' } as const;
const nodePort = 30_080;
const udpNodePort = 30_053;
const ports = [
  { name: 'tcp', protocol: 'TCP' as const, port: 80, targetPort: 8080, nodePort },
  { name: 'udp', protocol: 'UDP' as const, port: 53, targetPort: 5353, nodePort: udpNodePort },
];
type PodName = 'near' | 'far';

let cluster: LabCluster;
let node: LabNode;
let pods: Readonly<Record<PodName, LabPod>>;
let inNode: Prober;
let outside: Prober;
let agent: LabProcess | undefined;

beforeAll(async () => {
  cluster = stack.use(await startCluster({ name: 'loopback', nodes: 2, ipFamilies }, signal));
  const [node1, node2] = cluster.lab.nodes as [LabNode, LabNode];
  node = node1;
  pods = { near: await cluster.lab.addPod(node1, 'near'), far: await cluster.lab.addPod(node2, 'far') };
  for (const pod of ['near', 'far'] as const) startEchoServer(pods[pod], { pod, tcp: [8080], udp: [5353] });
  inNode = stack.use(await createProber(node, signal));
  outside = stack.use(await createProber(cluster.lab.client, signal));
});

afterAll(() => stack.disposeAsync());

/** Creates or changes the Service, with these endpoints in both families. */
async function serve(endpoints: readonly PodName[], spec: object = {}): Promise<void> {
  await remove();
  const metadata = { name: 'cart', namespace: 'default' };
  const whole = { type: 'NodePort' as const, ipFamilyPolicy: 'RequireDualStack' as const, ipFamilies, ports, ...spec };
  await cluster.api.create(apiResources.services, { metadata, spec: whole }, signal);
  for (const family of ipFamilies)
    await cluster.api.create(apiResources.endpointSlices, sliceTo(family, endpoints), signal);
}

async function remove(): Promise<void> {
  const { services, endpointSlices } = apiResources;
  const service = { name: 'cart' };
  if ((await cluster.api.find(services, service, signal)) !== undefined)
    await cluster.api.delete(services, service, {}, signal);
  for (const family of ipFamilies) {
    const slice = { name: `cart-${family.toLowerCase()}` };
    if ((await cluster.api.find(endpointSlices, slice, signal)) !== undefined)
      await cluster.api.delete(endpointSlices, slice, {}, signal);
  }
}

function sliceTo(family: IpFamily, endpoints: readonly PodName[]): EndpointSlice {
  const labels = { 'kubernetes.io/service-name': 'cart' };
  return {
    metadata: { name: `cart-${family.toLowerCase()}`, namespace: 'default', labels },
    addressType: family,
    ports: ports.map(({ name, protocol, targetPort }) => ({ name, protocol, port: targetPort })),
    endpoints: endpoints.map((name) => ({
      addresses: [pods[name].addresses[family] ?? ''],
      nodeName: pods[name].node.nodeName,
    })),
  };
}

async function leadTo(...endpoints: readonly PodName[]): Promise<void> {
  for (const family of ipFamilies) {
    const { metadata, endpoints: body } = sliceTo(family, endpoints);
    const patch = { kind: 'merge', body: { endpoints: body } } as const;
    await cluster.api.patch(apiResources.endpointSlices, { name: metadata.name ?? '' }, patch, signal);
  }
}

async function runAgent(mode: 'nftables' | 'ebpf', ...args: readonly string[]): Promise<void> {
  agent = cluster.startAgent(node, { proxyMode: mode, args });
  await until(async () => (await askInside(node, { path: '/healthz', port: 10256 })).status === 200);
}

const ask = (family: IpFamily): Promise<ProbeResult> =>
  inNode.probe({ protocol: 'tcp', address: loopback[family], port: nodePort });

/** Who answers, or how it went. */
async function answer(family: IpFamily): Promise<string> {
  const result = await ask(family);
  return result.status === 'answered' ? (result.by ?? '') : result.status;
}

const answersBecome = (expected: string): Promise<void> =>
  until(async () => (await Promise.all(ipFamilies.map(answer))).every((one) => one === expected));

async function metric(name: string, family: IpFamily): Promise<number> {
  const { body } = await askInside(node, '/metrics');
  const series = `kubeproxy_nftables_localhost_nodeport_${name}{ip_family="${family}"} `;
  return Number(body.split(`\n${series}`)[1]?.split('\n')[0]);
}

afterEach(remove);

describe.each(['nftables', 'ebpf'] as const)('in the %s mode, with primary and localhost', (mode) => {
  beforeAll(() => runAgent(mode, '--nodeport-addresses=primary,localhost'));
  afterAll(() => agent?.stop());

  test.each(ipFamilies)('%s: endpoints on every node answer; they see this node, not loopback', async (family) => {
    await serve(['near', 'far']);
    await until(async () => ['near', 'far'].includes(await answer(family)));
    const results = await Promise.all(Array.from({ length: 20 }, () => ask(family)));
    const answers = results.flatMap((one) => (one.status === 'answered' ? [one] : []));
    expect(answers).toHaveLength(20);
    expect(new Set(answers.map(({ by }) => by))).toEqual(new Set(['near', 'far']));
    const sources = answers.filter(({ by }) => by === 'far').map(({ seenSource }) => seenSource);
    expect(new Set(sources)).toEqual(new Set([node.addresses[family]]));
    const elsewhere = { protocol: 'tcp', address: node.addresses[family] ?? '', port: nodePort } as const;
    expect(await outside.probe(elsewhere)).toMatchObject({ status: 'answered' });
    expect(await metric('listeners', family)).toBe(1);
    expect(await metric('listener_creation_failures_total', family)).toBe(0);
  });

  test.each(ipFamilies)('%s: a connection outlives its endpoint, its Service and the listener', async (family) => {
    await serve(['near']);
    await until(async () => (await answer(family)) === 'near');
    const { connection } = await inNode.open({ protocol: 'tcp', address: loopback[family], port: nodePort });
    const echoed = { status: 'echoed' };
    expect(await connection?.exchange('first')).toEqual(echoed);
    await leadTo('far');
    await until(async () => (await answer(family)) === 'far');
    expect(await connection?.exchange('another endpoint')).toEqual(echoed);
    await leadTo();
    await until(async () => (await answer(family)) === 'refused');
    expect(await connection?.exchange('no listener')).toEqual(echoed);
    await leadTo('far');
    await until(async () => (await answer(family)) === 'far');
    await remove();
    await until(async () => (await answer(family)) === 'refused');
    expect(await connection?.exchange('no Service')).toEqual(echoed);
    await connection?.close();
  });

  test('without endpoints connections are refused, and there is no listener', async () => {
    await serve(['near']);
    await answersBecome('near');
    await leadTo();
    await answersBecome('refused');
    for (const family of ipFamilies) expect(await metric('listeners', family)).toBe(0);
  });

  test('policy Local uses endpoints on this node alone; at its own address the node may use the others', async () => {
    await serve(['near', 'far'], { externalTrafficPolicy: 'Local' });
    await answersBecome('near');
    await leadTo('far');
    await answersBecome('refused');
    for (const family of ipFamilies) {
      const own = { protocol: 'tcp', address: node.addresses[family] ?? '', port: nodePort } as const;
      expect(await inNode.probe(own)).toMatchObject({ by: 'far' });
      expect(await outside.probe(own)).toMatchObject({ status: 'timeout' });
    }
  });

  test('session affinity keeps the endpoint', async () => {
    await serve(['near', 'far'], {
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
    });
    for (const family of ipFamilies) {
      await until(async () => ['near', 'far'].includes(await answer(family)));
      const answers = await Promise.all(Array.from({ length: 12 }, () => answer(family)));
      expect(new Set(answers).size, answers.join(' ')).toBe(1);
    }
  });

  test('UDP is refused', async () => {
    await serve(['near']);
    await answersBecome('near');
    for (const family of ipFamilies) {
      const result = await inNode.probe({ protocol: 'udp', address: loopback[family], port: udpNodePort });
      expect(result).toMatchObject({ status: 'refused' });
    }
  });

  test('explain names the proxy', async () => {
    await serve(['near']);
    await answersBecome('near');
    const { body } = await askInside(node, `/debug/explain?from=127.0.0.1&to=127.0.0.1:${nodePort}`);
    expect(body).toContain('sentByProxy');
    const other = await askInside(node, `/debug/explain?from=127.0.0.1&to=127.0.0.2:${nodePort}`);
    expect(other.body).toContain('nodePortOnLoopback');
  });

  test('a port that another program has gives a warning and a count, and is served when it is free', async () => {
    const options = { pod: 'other', tcp: [nodePort], host: '127.0.0.1' };
    const other = startEchoServer(node, options);
    await until(async () => (await answer('IPv4')) === 'other');
    await serve(['near']);
    await until(async () => (await answer('IPv6')) === 'near');
    await until(async () => (await metric('listener_creation_failures_total', 'IPv4')) > 0);
    expect([await metric('listeners', 'IPv4'), await metric('listeners', 'IPv6')]).toEqual([0, 1]);
    const log = agent === undefined ? [] : await readLog(agent);
    expect(log.filter(({ level }) => level === 'warn')).toMatchObject([
      { msg: 'NodePort on loopback cannot listen, will retry', service: 'default/cart:tcp/TCP', port: nodePort },
    ]);
    await other.stop();
    await until(async () => (await answer('IPv4')) === 'near');
    expect(await metric('listeners', 'IPv4')).toBe(1);
  });
});

describe.each([
  ['nftables', '--nodeport-addresses=all', []],
  ['ebpf', '--nodeport-addresses=all', []],
  ['nftables', '--nodeport-addresses=primary,localhost', ['--feature-gates=KubeProxyNFTablesLocalhostNodePorts=false']],
] as const)('in the %s mode, with %s %s', (mode, addresses, flags) => {
  beforeAll(() => runAgent(mode, addresses, ...flags));
  afterAll(() => agent?.stop());

  test('loopback is refused, and the address of the node answers', async () => {
    await serve(['near']);
    for (const family of ipFamilies) {
      const own = { protocol: 'tcp', address: node.addresses[family] ?? '', port: nodePort } as const;
      await until(async () => (await outside.probe(own)).status === 'answered');
      expect(await answer(family)).toBe('refused');
      expect(await metric('listeners', family)).toBe(0);
    }
    const { body } = await askInside(node, `/debug/explain?from=127.0.0.1&to=127.0.0.1:${nodePort}`);
    expect(body).toContain('nodePortOnLoopback');
  });
});
