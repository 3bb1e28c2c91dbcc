import { ipFamilies } from '@switchyard/core';
import {
  createProber,
  type LabCluster,
  type LabCommandResult,
  type LabNode,
  type LabProcess,
  type Prober,
  startCluster,
  waitForAgents,
} from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readLog, until } from './agent-log.ts';
import { addEchoService } from './echo-service.ts';
import { askInside } from './http-client.ts';
import { kubeProxyTable } from './kube-proxy-table.ts';
import { program, withRights } from './with-rights.ts';

// The iptables mode with the rights of its manifests: what --init-only, the metrics server, a dump and a clean-up say.

const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
const nodePort = 30080;
let cluster: LabCluster;
let node: LabNode;
let self: Prober;
let client: Prober;

beforeAll(async () => {
  cluster = stack.use(await startCluster({ name: 'iptmode', nodes: 1, ipFamilies }, signal));
  [node] = cluster.lab.nodes as [LabNode];
  await addEchoService(cluster, { node, nodePort }, signal);
  self = stack.use(await createProber(node, signal));
  client = stack.use(await createProber(cluster.lab.client, signal));
});

afterAll(() => stack.disposeAsync());

const agent = (...args: readonly string[]): Promise<LabCommandResult> => node.run(program, args);

const get = async (path: string): Promise<string> => (await askInside(node, path)).body;

async function start(variant: 'nft' | 'legacy', rights: string, more: readonly string[] = []): Promise<LabProcess> {
  const args = ['--proxy-mode=iptables', `--switchyard-iptables-variant=${variant}`, ...more];
  const started = cluster.startAgent(node, { program: rights, args });
  await waitForAgents(cluster.lab, [started], signal);
  return started;
}

const sysctl = 'net.ipv4.conf.all.route_localnet';
const localhost = { protocol: 'tcp', address: '127.0.0.1', port: nodePort } as const;

test('after --init-only CAP_NET_ADMIN is enough for iptables-nft: NodePorts on 127.0.0.1 too, metrics and dump work', async () => {
  const flags = ['--kubeconfig=/nowhere', '--logging-format=json', '--conntrack-max-per-core=0', '--oom-score-adj=0'];
  const setUp = await agent(...flags, '--proxy-mode=', '--init-only');
  expect(setUp.exitCode, setUp.stderr).toBe(0);
  expect(setUp.stderr).toContain('Using iptables proxy');
  expect(setUp.stderr).toContain('Setting route_localnet=1 to allow node-ports on localhost');
  expect(setUp.stderr).toContain('"mode":"iptables"');
  expect((await node.run('sysctl', ['-n', sysctl])).stdout.trim()).toBe('1');
  expect((await node.run('nft', ['list', 'ruleset'])).stdout).toBe(''); // not even a table

  const running = await start('nft', await withRights(cluster, 'net_admin'));
  expect(await self.probe(localhost)).toMatchObject({ status: 'answered', by: 'echo' });
  expect(await client.probe({ ...localhost, address: node.addresses.IPv6 ?? '' })).toMatchObject({ by: 'echo' });
  expect(await get('/proxyMode')).toBe('iptables');
  const metrics = await get('/metrics');
  for (const [name, least] of [
    ['kubeproxy_sync_proxy_rules_iptables_total{ip_family="IPv4",table="nat"}', 8],
    ['kubeproxy_sync_proxy_rules_iptables_total{ip_family="IPv6",table="filter"}', 3],
    ['kubeproxy_sync_proxy_rules_iptables_last{ip_family="IPv4",table="nat"}', 8],
    ['kubeproxy_iptables_ct_state_invalid_dropped_packets_total', 0],
    ['kubeproxy_iptables_localhost_nodeports_accepted_packets_total', 1],
    [
      'switchyard_service_connections_total{ip_family="IPv4",namespace="default",port="http",protocol="TCP",service="cart"}',
      1,
    ],
  ] as const) {
    const line = metrics.split('\n').find((one) => one.startsWith(name));
    expect(Number(line?.slice(name.length)), `${name} in ${line}`).toBeGreaterThanOrEqual(least);
  }
  expect(metrics).not.toContain('nftables_sync_failures');
  expect(metrics).toContain('kubeproxy_sync_proxy_rules_iptables_restore_failures_total{ip_family="IPv4"} 0');
  expect(await get('/debug/explain?from=127.0.0.1&to=127.0.0.1:30080')).toContain('forward to the only endpoint');
  expect((await readLog(running)).filter(({ level }) => level === 'warn')).toEqual([]);
  await running.stop();

  const dump = await agent('--switchyard-dump');
  expect(dump.exitCode, dump.stderr).toBe(0);
  expect(dump.stdout).toMatch(
    /^# IPv4: rules last known to be right \d+ s ago\n\*nat\n[^#]*^# IPv6: rules last known .* ago\n\*nat\n/m,
  );
  expect(dump.stdout).toMatch(/^-A KUBE-SVC-\S+ -m comment --comment "default\/cart:http -> \S+:8080" -j KUBE-SEP-/m);
});

test('iptables-legacy wants CAP_NET_RAW, and says so', async () => {
  const less = cluster.startAgent(node, {
    program: await withRights(cluster, 'net_admin'),
    args: ['--proxy-mode=iptables', '--switchyard-iptables-variant=legacy'],
  });
  expect(await less.ended).toBe(1);
  const said = (await readLog(less)).map(({ msg }) => msg).join('\n');
  expect(said).toMatch(/cannot run --proxy-mode iptables: .*CAP_NET_RAW/);

  const left = { ipFamily: 'IPv4', name: 'x', clusterIp: '10.96.9.9', port: 80, nodePort: 30999 } as const;
  const table = kubeProxyTable([{ ...left, protocol: 'tcp', endpoint: '10.244.9.9:80' }]);
  expect((await node.run('nft', ['-f', '-'], { stdin: table })).exitCode).toBe(0);
  const running = await start('legacy', await withRights(cluster, 'net_admin', 'net_raw'));
  for (const whose of ['our other mode', 'kube-proxy']) {
    await until(async () => (await readLog(running)).some(({ msg }) => msg === `removed what ${whose} left`));
  }
  expect((await node.run('nft', ['list', 'tables'])).stdout).not.toContain('kube-proxy');
  expect(await client.probe({ ...localhost, address: node.addresses.IPv4 ?? '' })).toMatchObject({ by: 'echo' });
  expect((await node.run('iptables-nft-save', [])).stdout).not.toContain(':KUBE-SERVICES');
  await running.stop();

  const unread = await node.run(await withRights(cluster, 'net_admin'), ['--switchyard-dump', '--logging-format=json']);
  expect([unread.exitCode, unread.stdout]).toEqual([1, '']);
  expect(unread.stderr).toMatch(/cannot determine whether iptables holds rules of this agent: .*CAP_NET_RAW/);
});

test('the clean-up removes the state of the iptables mode with any settings, but not that of a running kube-proxy', async () => {
  expect((await node.run('iptables-legacy-save', [])).stdout).toContain(':SWITCHYARD');
  const kubeProxy = node.spawn(process.execPath, ['-e', 'require("net").createServer().listen(10256)']);
  await until(
    async () => (await self.probe({ ...localhost, protocol: 'connect', port: 10_256 })).status === 'answered',
  );
  const handedOver = await agent('--cleanup');
  expect(handedOver.stdout).toMatch(
    /^kept: chains of iptables with kube-proxy's names: something listens on port 10256/m,
  );
  const saved = (await node.run('iptables-legacy-save', [])).stdout;
  expect([saved.includes(':KUBE-SERVICES'), saved.includes(':SWITCHYARD')]).toEqual([true, false]);
  await kubeProxy.stop();
  expect((await agent('--cleanup')).stdout).toBe('nothing to remove\n');

  const flags = ['--iptables-masquerade-bit=5', '--masquerade-all', '--conntrack-tcp-be-liberal'];
  const again = await start('legacy', await withRights(cluster, 'net_admin', 'net_raw'), flags);
  await again.stop();
  const asAsked = (await node.run('iptables-legacy-save', [])).stdout;
  expect(asAsked).toContain('-A KUBE-MARK-MASQ -j MARK --set-xmark 0x20/0x20');
  expect(asAsked).toMatch(/^-A KUBE-SVC-\S+ -d 10\.\S+ -p tcp .* -j KUBE-MARK-MASQ$/m);
  expect(asAsked).not.toContain('INVALID');
  const cleaned = await agent('--cleanup');
  expect(cleaned.exitCode, cleaned.stdout).toBe(0);
  expect(cleaned.stdout).toMatch(/^removed: iptables-legacy, table nat: \d+ chains/m);
  for (const name of ['iptables-nft', 'ip6tables-nft', 'iptables-legacy', 'ip6tables-legacy']) {
    const { stdout } = await node.run(`${name}-save`, []);
    expect(stdout).not.toMatch(/^:(?:SWITCHYARD|KUBE-(?!FIREWALL))/m);
  }
});
