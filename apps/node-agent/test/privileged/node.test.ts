import { type IpFamily, ipFamilies, systemClock, millis } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  createProber,
  type LabCluster,
  type LabNode,
  type LabProcess,
  type Prober,
  startCluster,
  startEchoServer,
} from '@switchyard/lab';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { readLog, until } from './agent-log.ts';

const { signal } = new AbortController();
/** The Node of the agent under test: no kubelet of the lab registers it. */
const name = 'late';
const port = 80;

let cluster: LabCluster;
let node: LabNode;
let client: Prober;
let clusterIps: Readonly<Record<IpFamily, string>>;
let podAddresses: Readonly<Record<IpFamily, string>>;
let agent: LabProcess | undefined;

beforeAll(async () => {
  cluster = await startCluster({ name: 'nodenode', nodes: 2, ipFamilies }, signal);
  const [node1, node2] = cluster.lab.nodes as [LabNode, LabNode];
  node = node1;
  const server = await cluster.lab.addPod(node2, 'server');
  startEchoServer(server, { pod: 'server', node: node2.nodeName, tcp: [8080] });
  const sender = await cluster.lab.addPod(node1, 'sender');
  podAddresses = { IPv4: sender.addresses.IPv4 ?? '', IPv6: sender.addresses.IPv6 ?? '' };
  client = await createProber(sender, signal);
  const ports = [{ name: 'http', port, protocol: 'TCP' as const }];
  const spec = { ipFamilyPolicy: 'RequireDualStack' as const, ipFamilies, ports };
  const service = await cluster.api.create(apiResources.services, { metadata: { name: 'cart' }, spec }, signal);
  const [first = '', second = ''] = service.spec?.clusterIPs ?? [];
  clusterIps = first.includes(':') ? { IPv4: second, IPv6: first } : { IPv4: first, IPv6: second };
  for (const family of ipFamilies) {
    const slice = {
      metadata: { name: `cart-${family.toLowerCase()}`, labels: { 'kubernetes.io/service-name': 'cart' } },
      addressType: family,
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' as const }],
      endpoints: [{ addresses: [server.addresses[family] ?? ''], conditions: { ready: true } }],
    };
    await cluster.api.create(apiResources.endpointSlices, slice, signal);
  }
});

afterEach(async () => {
  await agent?.stop();
  await putNode(undefined);
  await node.run('nft', ['flush', 'ruleset']);
});

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
});

interface NodeSpec {
  readonly addresses: readonly string[];
  readonly podCIDRs?: readonly string[];
}

/** Makes the Node anew, as a kubelet does that registers again: pod ranges of a Node cannot be changed. */
async function putNode(spec: NodeSpec | undefined): Promise<void> {
  if ((await cluster.api.find(apiResources.nodes, { name }, signal)) !== undefined) {
    await cluster.api.delete(apiResources.nodes, { name }, {}, signal);
  }
  if (spec === undefined) return;
  const { addresses, podCIDRs = [] } = spec;
  const status = { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) };
  const cidrs = podCIDRs.length === 0 ? {} : { podCIDR: podCIDRs[0] ?? '', podCIDRs };
  await cluster.api.create(apiResources.nodes, { metadata: { name }, spec: cidrs, status }, signal);
}

function start(...args: readonly string[]): LabProcess {
  agent = cluster.startAgent(node, { args: [`--hostname-override=${name}`, '--cluster-cidr=', ...args] });
  return agent;
}

async function hasLogged(text: string): Promise<boolean> {
  return agent !== undefined && (await readLog(agent)).some(({ msg }) => msg === text);
}

/** The address by which the endpoint knows the pod that asks the cluster IP; undefined: no answer. */
async function seenSource(family: IpFamily): Promise<string | undefined> {
  const result = await client.probe({ protocol: 'tcp', address: clusterIps[family], port, timeout: 300 });
  return result.status === 'answered' ? result.seenSource : undefined;
}

async function tables(): Promise<string> {
  return (await node.run('nft', ['list', 'tables'])).stdout;
}

const own = (family: IpFamily): string => node.addresses[family] ?? '';
const addresses = (): readonly string[] => ipFamilies.map(own);

test('NodeCIDR: nothing is written before the Node has pod ranges; these identify pods, and are followed', async () => {
  const running = start('--detect-local-mode=NodeCIDR');
  await until(() => hasLogged('in sync'));
  await putNode({ addresses: addresses() });
  await systemClock.sleep(millis(500), signal);
  expect(await tables()).toBe('');
  await putNode({ addresses: addresses(), podCIDRs: ['10.250.0.0/24', 'fd00:10:250::/64'] });
  for (const family of ipFamilies) {
    await until(async () => (await seenSource(family)) === own(family)); // no pod, according to the Node
  }
  const podCIDRs = ipFamilies.map((family) => node.podCidrs[family] ?? '');
  await putNode({ addresses: addresses(), podCIDRs });
  for (const family of ipFamilies) await until(async () => (await seenSource(family)) === podAddresses[family]);
  await putNode(undefined);
  await until(() => hasLogged('the Node was deleted; its last addresses and pod ranges stay in use'));
  for (const family of ipFamilies) expect(await seenSource(family)).toBe(podAddresses[family]);
  expect(running.child.exitCode).toBeNull();
});

test.each([
  ['BridgeInterface', '--pod-bridge-interface=pod2', 'pod'],
  ['BridgeInterface', '--pod-bridge-interface=pod', 'node'],
  ['InterfaceNamePrefix', '--pod-interface-name-prefix=po', 'pod'],
  ['InterfaceNamePrefix', '--pod-interface-name-prefix=veth', 'node'],
])('%s: with %s the endpoint sees the address of the %s', async (mode, flag, seen) => {
  await putNode({ addresses: addresses() });
  start(`--detect-local-mode=${mode}`, flag);
  for (const family of ipFamilies) {
    const expected = seen === 'pod' ? podAddresses[family] : own(family);
    await until(async () => (await seenSource(family)) !== undefined);
    expect(await seenSource(family)).toBe(expected);
  }
});

test('addresses of a Node that comes later, or gets others, are followed', async () => {
  const ruleset = async (): Promise<string> =>
    (await node.run('nft', ['list', 'set', 'inet', 'switchyard', 'nodeport-ips4'])).stdout;
  start();
  await until(() => hasLogged('in sync'));
  await putNode({ addresses: ['192.0.2.7', ...addresses()] });
  await until(async () => (await ruleset()).includes('192.0.2.7'));
  await putNode({ addresses: [...addresses()] });
  await until(async () => (await ruleset()).includes(own('IPv4')));
  expect(await ruleset()).not.toContain('192.0.2.7');
  await agent?.stop();
  start('--bind-address=192.0.2.9');
  await until(async () => (await ruleset()).includes('192.0.2.9'));
});

test.each([
  ['its Node says so', [], ['fd00::7', '192.0.2.7']],
  ['--bind-address says so', ['--bind-address=fd00::7'], ['192.0.2.7']],
])('IPv6 that is disabled on all interfaces ends an agent whose primary family it is: %s', async (_, args, given) => {
  const disable = async (value: 0 | 1): Promise<void> => {
    const paths = 'for f in /proc/sys/net/ipv6/conf/*/disable_ipv6';
    const result = await node.run('sh', ['-c', `${paths}; do echo ${value} > $f; done`]);
    expect(result.exitCode, result.stderr).toBe(0);
  };
  await putNode({ addresses: given });
  await disable(1);
  try {
    const running = start(...args);
    expect(await running.ended).toBe(1);
    const last = (await readLog(running)).at(-1);
    expect(last?.msg).toContain("our Node's primary address is IPv6, and this machine's kernel has no IPv6");
    expect(await tables()).toBe('');
  } finally {
    await disable(0);
  }
});
