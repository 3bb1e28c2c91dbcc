import { readdir } from 'node:fs/promises';
import { type IpFamily, ipFamilies, millis, systemClock } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { kubeProxySave, type LeftService } from '@switchyard/netfilter/testing';
import {
  type AgentOptions,
  createProber,
  type LabCluster,
  type LabNode,
  type LabPod,
  type LabProcess,
  type ProbeConnection,
  type Prober,
  startCluster,
  startEchoServer,
  waitForAgents,
} from '@switchyard/lab';
import { queryCgroup } from '@switchyard/native';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readLog, until } from './agent-log.ts';
import { type LoadLine, type LoadReport, openLoad } from './open-load.ts';
import { program } from './with-rights.ts';

// The agent goes from one mode to the others on one node, and from and to kube-proxy's own chains, under open-loop load: pods, the
// node and a client outside, TCP and UDP, both families, three Services.

const { signal } = new AbortController();
const serviceCount = 3;
const interval = 100;
const stack = new AsyncDisposableStack();
let cluster: LabCluster;
let node: LabNode;
let pods: readonly LabPod[];
let client: Prober;
let lines: readonly LoadLine[];
const services: Record<IpFamily, string>[] = [];
const held: ProbeConnection[] = [];

const programs: Readonly<Record<IpFamily, string>> = { IPv4: 'iptables', IPv6: 'ip6tables' };
const nodePortOf = (index: number, protocol: 'tcp' | 'udp'): number => 30080 + 2 * index + (protocol === 'udp' ? 1 : 0);

beforeAll(async () => {
  cluster = stack.use(await startCluster({ name: 'switch', nodes: 1, ipFamilies }, signal));
  [node] = cluster.lab.nodes as [LabNode];
  pods = await Promise.all(['a', 'b'].map((name) => cluster.lab.addPod(node, name)));
  for (const [index, pod] of pods.entries()) startEchoServer(pod, { pod: `p${index}`, tcp: [8080], udp: [8080] });
  client = stack.use(await createProber(cluster.lab.client, signal));
  const self = stack.use(await createProber(node, signal));
  const caller = stack.use(await createProber(await cluster.lab.addPod(node, 'caller'), signal));
  for (let index = 0; index < serviceCount; index++) await createService(index);
  lines = services.flatMap((clusterIps, index) =>
    ipFamilies.flatMap((family) =>
      (['tcp', 'udp'] as const).flatMap((protocol): readonly LoadLine[] => {
        const inside = { protocol, address: clusterIps[family], port: 80 };
        const outside = { protocol, address: node.addresses[family] ?? '', port: nodePortOf(index, protocol) };
        return [
          { name: `pod to ${inside.address} ${protocol}`, from: caller, request: inside },
          { name: `node to ${inside.address} ${protocol}`, from: self, request: inside },
          { name: `client to ${outside.address}:${outside.port} ${protocol}`, from: client, request: outside },
        ];
      }),
    ),
  );
});

afterAll(() => stack.disposeAsync());

async function createService(index: number): Promise<void> {
  const name = `echo${index}`;
  const ports = (['tcp', 'udp'] as const).map((protocol) => ({
    name: protocol,
    port: 80,
    nodePort: nodePortOf(index, protocol),
    protocol: protocol.toUpperCase() as 'TCP' | 'UDP',
  }));
  const spec = { type: 'NodePort' as const, ipFamilyPolicy: 'PreferDualStack' as const, ports };
  const made = await cluster.api.create(
    apiResources.services,
    { metadata: { name, namespace: 'default' }, spec },
    signal,
  );
  const ips = made.spec?.clusterIPs ?? [];
  const ipOf = (isSix: boolean): string => ips.find((ip) => ip.includes(':') === isSix) ?? '';
  services.push({ IPv4: ipOf(false), IPv6: ipOf(true) });
  for (const addressType of ipFamilies) {
    const labels = { 'kubernetes.io/service-name': name };
    const slice = {
      metadata: { name: `${name}-${addressType.toLowerCase()}`, namespace: 'default', labels },
      addressType,
      ports: ports.map((port) => ({ name: port.name, port: 8080, protocol: port.protocol })),
      endpoints: pods.map(({ addresses }) => ({
        addresses: [addresses[addressType] ?? ''],
        nodeName: node.nodeName,
        conditions: { ready: true },
      })),
    };
    await cluster.api.create(apiResources.endpointSlices, slice, signal);
  }
}

async function run(file: string, args: readonly string[], stdin = ''): Promise<string> {
  const result = await node.run(file, args, { stdin });
  expect(result.exitCode, `${file} ${args.join(' ')}: ${result.stderr}`).toBe(0);
  return result.stdout;
}

/** Chains with kube-proxy's names, and ours, in one variant of both families. */
async function chainsOf(variant: 'nft' | 'legacy'): Promise<readonly string[]> {
  const saved = await Promise.all(ipFamilies.map((family) => run(`${programs[family]}-${variant}-save`, [])));
  return [...saved.join('').matchAll(/^:((?:KUBE-(?!FIREWALL|KUBELET|IPTABLES-HINT|MARK-DROP)|SWITCHYARD)\S*)/gm)].map(
    ([, name = '']) => name,
  );
}

type Mode = 'nftables' | 'iptables-nft' | 'iptables-legacy' | 'ebpf';

/** Every mode gets the bpffs of the ebpf mode, to find its pins there and remove them. */
function agentOf(mode: Mode): AgentOptions {
  const bpffs = `--switchyard-ebpf-bpffs=${node.bpffsPath}`;
  if (mode === 'nftables' || mode === 'ebpf') return { proxyMode: mode, args: [bpffs] };
  return { proxyMode: 'iptables', args: [bpffs, `--switchyard-iptables-variant=${mode.replace('iptables-', '')}`] };
}

/** Runs an agent in a mode until it has taken over everything, and stops it; rules stay. Returns what it told. */
async function visit(mode: Mode, removed: RegExp | undefined): Promise<void> {
  const agent: LabProcess = cluster.startAgent(node, agentOf(mode));
  await waitForAgents(cluster.lab, [agent], signal);
  if (removed !== undefined) await until(async () => (await readLog(agent)).some(({ msg }) => removed.test(msg)));
  const log = await readLog(agent);
  expect(log.filter(({ level }) => level === 'warn' || level === 'error' || level === 'text')).toEqual([]);
  await systemClock.sleep(millis(300), signal);
  await agent.stop();
  await systemClock.sleep(millis(300), signal);
}

/** Whether the agent has pins; the kernel has files of its own there. */
async function pinned(): Promise<boolean> {
  return (await readdir(node.bpffsPath ?? '')).includes('switchyard');
}

/** Only this mode has rules of the agent. */
async function expectOnly(mode: Mode): Promise<void> {
  const tables = [...(await run('nft', ['list', 'tables', 'inet'])).matchAll(/^table inet (switchyard\S*)$/gm)];
  const wanted = { nftables: /^switchyard(-2)?$/, ebpf: /^switchyard-ebpf(-2|-guard)?$/ };
  const expected = mode === 'nftables' || mode === 'ebpf' ? wanted[mode] : /^never$/;
  expect(tables.map(([, name = '']) => name).filter((name) => !expected.test(name))).toEqual([]);
  expect(tables.length > 0).toBe(mode === 'nftables' || mode === 'ebpf');
  expect(await pinned()).toBe(mode === 'ebpf');
  for (const hook of ['connect4', 'sendmsg6'] as const) {
    const { length } = queryCgroup(node.cgroupPath ?? '', hook);
    expect(length > 0, `programs at ${hook}`).toBe(mode === 'ebpf');
  }
  for (const variant of ['nft', 'legacy'] as const) {
    const chains = await chainsOf(variant);
    if (mode === `iptables-${variant}`) expect(chains).toEqual(expect.arrayContaining(['KUBE-SERVICES', 'SWITCHYARD']));
    else expect(chains).toEqual([]);
  }
}

/** Each mode makes them its own way, and each has to outlive all others. */
async function holdConnections(): Promise<void> {
  const before = held.length;
  for (const { from, request } of lines.filter(({ request }) => request.protocol === 'tcp')) {
    const { connection } = await from.open(request);
    if (connection !== undefined) held.push(connection);
  }
  expect(held).toHaveLength(before + lines.length / 2);
}

function told({ count, lost }: LoadReport): void {
  process.stdout.write(`requests: ${count}, lost: ${lost.length}\n`);
  expect(lost).toEqual([]);
  expect(count).toBeGreaterThan(300);
}

test('from each mode to the others and back: nothing is lost, connections go on, and nothing of the other mode stays', async () => {
  const changed = /^removed what our other mode left$/;
  await visit('nftables', undefined);
  await holdConnections();
  const report = await openLoad(lines, interval, async () => {
    for (const mode of [
      'iptables-nft',
      'nftables',
      'iptables-legacy',
      'iptables-nft',
      'iptables-legacy',
      'nftables',
    ] as const) {
      await visit(mode, changed);
      await expectOnly(mode);
    }
    for (const mode of ['ebpf', 'iptables-nft', 'ebpf', 'nftables'] as const) {
      await visit(mode, changed);
      await expectOnly(mode);
      if (mode === 'ebpf') await holdConnections();
    }
  });
  for (const connection of held) {
    expect(await connection.exchange('still there?')).toEqual({ status: 'echoed' });
    await connection.close();
  }
  told(report);
});

/** Rules of a kube-proxy for the Services, of which its first pod is the only endpoint. */
function kubeProxyRules(ipFamily: IpFamily): string {
  return kubeProxySave(
    services.flatMap((clusterIps, index) =>
      (['tcp', 'udp'] as const).map((protocol): LeftService => {
        const ip = pods[0]?.addresses[ipFamily] ?? '';
        return {
          ipFamily,
          name: `echo${index}:${protocol}`,
          clusterIp: clusterIps[ipFamily],
          port: 80,
          nodePort: nodePortOf(index, protocol),
          protocol,
          endpoint: ipFamily === 'IPv4' ? `${ip}:8080` : `[${ip}]:8080`,
        };
      }),
    ),
  );
}

/** Rules of the kernel's own chains that lead to kube-proxy's. */
function jumpsOf(ipFamily: IpFamily): readonly (readonly [table: string, rule: string])[] {
  const jumps: (readonly [string, string])[] = [];
  let table = '';
  for (const line of kubeProxyRules(ipFamily).split('\n')) {
    if (line.startsWith('*')) table = line.slice(1);
    if (/^-A [A-Z]+ .*-j KUBE-(?!FIREWALL)/.test(line) && !line.startsWith('-A KUBE')) jumps.push([table, line]);
  }
  return jumps;
}

test.each(['nft', 'legacy'] as const)(
  "kube-proxy's chains in iptables-%s are taken over, and a kube-proxy finds ours as it left its own: nothing is lost",
  async (variant) => {
    await run('nft', ['flush', 'ruleset']);
    const emptied = ['nat', 'filter', 'mangle'].map((table) => `*${table}\nCOMMIT\n`).join('');
    for (const family of ipFamilies) {
      await run(`${programs[family]}-legacy-restore`, [], emptied);
      await run(`${programs[family]}-${variant}-restore`, [], kubeProxyRules(family));
    }
    const stale = (await chainsOf(variant)).filter((name) => /^KUBE-(?:SVC|SEP|EXT)-/.test(name));
    const report = await openLoad(lines, interval, async () => {
      await systemClock.sleep(millis(300), signal);
      await visit(`iptables-${variant}`, undefined);
      const left = new Set(await chainsOf(variant));
      expect(stale.filter((name) => left.has(name))).toEqual([]);
      // A kube-proxy: it looks for its jumps, and writes its chains whole over those it finds.
      for (const family of ipFamilies) {
        for (const [table, jump] of jumpsOf(family)) {
          const check = ['-c', `${programs[family]}-${variant} -t ${table} ${jump.replace(/^-A/, '-C')}`];
          await run('sh', check);
        }
        const own = kubeProxyRules(family)
          .replaceAll(/^-A (?!KUBE-).*\n/gm, '')
          .replaceAll(/^:(?!KUBE-).*\n/gm, '');
        await run(`${programs[family]}-${variant}-restore`, ['--noflush'], own);
      }
      await systemClock.sleep(millis(300), signal);
    });
    told(report);
  },
);

test('the ebpf mode takes over from kube-proxy, keeps forwarding without an agent, and --cleanup takes all of it away', async () => {
  await run('nft', ['flush', 'ruleset']);
  for (const family of ipFamilies) await run(`${programs[family]}-nft-restore`, [], kubeProxyRules(family));
  const report = await openLoad(lines, interval, async () => {
    await systemClock.sleep(millis(300), signal);
    await visit('ebpf', /^removed what kube-proxy left$/);
    await expectOnly('ebpf');
  });
  told(report);
  const agent = (...args: readonly string[]) => node.run(program, args);
  const blind = await agent('--cleanup', '--switchyard-ebpf-bpffs=/run/nowhere');
  expect(blind).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('the ebpf mode was here') as string });
  await expectOnly('ebpf');
  const done = await agent('--cleanup', `--switchyard-ebpf-bpffs=${node.bpffsPath}`);
  expect(done).toMatchObject({ exitCode: 0, stderr: '' });
  process.stdout.write(done.stdout);
  expect(await pinned()).toBe(false);
  expect(await run('nft', ['list', 'tables'])).not.toContain('switchyard');
  await expect.poll(() => queryCgroup(node.cgroupPath ?? '', 'connect4')).toEqual([]);
  const again = await agent('--cleanup', `--switchyard-ebpf-bpffs=${node.bpffsPath}`);
  expect(again).toMatchObject({ exitCode: 0, stdout: 'nothing to remove\n' });
});
