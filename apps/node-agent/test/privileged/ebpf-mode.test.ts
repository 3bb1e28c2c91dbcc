import { ipFamilies } from '@switchyard/core';
import {
  createProber,
  type LabCluster,
  type LabCommandResult,
  type LabHost,
  type LabNode,
  type ProbeResult,
  type Prober,
  proxyModeFlags,
  startCluster,
  waitForAgents,
} from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readLog, until } from './agent-log.ts';
import { addEchoService } from './echo-service.ts';
import { askInside } from './http-client.ts';
import { program, withRights } from './with-rights.ts';

// The ebpf mode with the rights of its manifests: what it refuses, what --init-only, the metrics server and a dump say.

const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
const nodePort = 30080;
let cluster: LabCluster;
let node: LabNode;
let inPod: Prober;
let client: Prober;
let clusterIp: string;

beforeAll(async () => {
  cluster = stack.use(await startCluster({ name: 'ebpfmode', nodes: 1, ipFamilies }, signal));
  [node] = cluster.lab.nodes as [LabNode];
  ({ clusterIp } = await addEchoService(cluster, { node, nodePort }, signal));
  inPod = stack.use(await createProber(await cluster.lab.addPod(node, 'caller'), signal));
  client = stack.use(await createProber(cluster.lab.client, signal));
});

afterAll(() => stack.disposeAsync());

const settings = ['--kubeconfig=/nowhere', '--logging-format=json', '--conntrack-max-per-core=0', '--oom-score-adj=0'];

function initOnly(file: string, ...more: readonly string[]): Promise<LabCommandResult> {
  return node.run(file, [...settings, ...proxyModeFlags(node, 'ebpf'), '--init-only', ...more]);
}

test.each([
  ['rights', ['net_admin'], [], /cannot run --proxy-mode ebpf: this process may not use BPF/],
  ['a cgroup2', ['net_admin', 'sys_admin'], ['--switchyard-ebpf-cgroup=/proc'], /ebpf: \/proc is not .* cgroup2 mount/],
  ['a bpffs', ['net_admin', 'bpf', 'perfmon'], ['--switchyard-ebpf-bpffs=/proc'], /no bpffs is mounted at \/proc/],
] as const)('without %s it says so, and touches nothing', async (_, rights, flags, message) => {
  const refused = await initOnly(await withRights(cluster, ...rights), ...flags);
  expect(refused.exitCode).toBe(1);
  expect(refused.stderr).toMatch(message);
  expect((await node.run('nft', ['list', 'ruleset'])).stdout).toBe('');
});

test('--init-only mounts bpffs where it is missing, and makes nothing else', async () => {
  // In a mount namespace of its own: what it mounts goes with it.
  const rights = await withRights(cluster, 'net_admin', 'sys_admin');
  const done = await initOnly(rights, `--switchyard-ebpf-bpffs=${cluster.lab.folder}/fresh`);
  expect(done.exitCode, done.stderr).toBe(0);
  expect(done.stderr).toContain('mounted bpffs');
  expect(done.stderr).toContain('this host can run the dataplane; no rule was made');
  expect((await node.run('nft', ['list', 'ruleset'])).stdout).toBe('');
});

test('CAP_NET_ADMIN and CAP_SYS_ADMIN are enough; metrics, explain and dump show the mode', async () => {
  const rights = await withRights(cluster, 'net_admin', 'sys_admin');
  const args = ['established', 'close-wait'].map((name) => `--conntrack-tcp-timeout-${name}=0s`);
  const running = cluster.startAgent(node, { proxyMode: 'ebpf', program: rights, args });
  await waitForAgents(cluster.lab, [running], signal);
  const get = async (path: string): Promise<string> => (await askInside(node, path)).body;
  expect(await inPod.probe({ protocol: 'tcp', address: clusterIp, port: 80 })).toMatchObject({ by: 'echo' });
  for (const family of ipFamilies) {
    const outside = { protocol: 'tcp', address: node.addresses[family] ?? '', port: nodePort } as const;
    expect(await client.probe(outside)).toMatchObject({ by: 'echo' });
  }
  expect(await get('/proxyMode')).toBe('ebpf');
  const metrics = await get('/metrics');
  expect(metrics).toMatch(/^switchyard_build_info\{backend="ebpf",/m);
  const labels = 'ip_family="IPv4",namespace="default",port="http",protocol="TCP",service="cart"';
  const count = metrics.split(`switchyard_service_connections_total{${labels}} `)[1]?.split('\n')[0];
  expect(Number(count)).toBe(2);
  expect(metrics).toContain('kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family="IPv4"} 1\n');
  expect(metrics).toContain('switchyard_apply_failures_total{ip_family="IPv6"} 0\n');
  expect(metrics).not.toMatch(/sync_proxy_rules_(?:nft|ipt)ables/);
  expect(await get(`/debug/explain?from=10.244.1.9&to=${clusterIp}:80`)).toContain('sentBySocket');
  const dumped = await get('/debug/dump');
  expect(dumped).toMatch(/^# IPv4: rules last known to be right \d+ s ago\n/);
  expect((await readLog(running)).filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
  await running.stop();

  const asked = await node.run(program, ['--switchyard-dump', `--switchyard-ebpf-bpffs=${node.bpffsPath}`]);
  expect(asked.exitCode, asked.stderr).toBe(0);
  expect(asked.stdout).toMatch(
    /^# IPv4: rules last known to be right \d+ s ago\n[^]*^# IPv6: rules last known .* ago\n/m,
  );
  expect(asked.stdout).toContain(clusterIp);
});

test('a bridge that comes while the agent runs, with or without netfilter for bridges, is served by rules', async () => {
  const ip = async (host: LabHost, ...args: readonly string[]): Promise<void> => {
    const { exitCode, stderr } = await host.run('ip', args);
    expect(exitCode, `ip ${args.join(' ')}: ${stderr}`).toBe(0);
  };
  const outside = cluster.lab.client;
  const running = cluster.startAgent(node, { proxyMode: 'ebpf', args: ['--switchyard-ebpf-north-south=tc'] });
  await waitForAgents(cluster.lab, [running], signal);
  const rules = async (): Promise<string> =>
    (await node.run('nft', ['list', 'table', 'inet', 'switchyard-ebpf'])).stdout;
  expect(await rules()).not.toContain(clusterIp);
  await ip(node, 'link', 'add', 'br1', 'type', 'bridge', 'stp_state', '0', 'forward_delay', '0');
  await ip(node, 'link', 'add', 'port1', 'type', 'veth', 'peer', 'name', 'behind', 'netns', outside.namespace);
  await ip(node, 'link', 'set', 'port1', 'master', 'br1', 'up');
  // As most CNIs with a bridge have it: not the address of a port.
  await ip(node, 'link', 'set', 'br1', 'address', '02:00:00:00:77:01', 'up');
  await ip(outside, 'link', 'set', 'behind', 'up');
  for (const family of ipFamilies) {
    const [gateway, source, length, ...more] =
      family === 'IPv4' ? ['192.168.77.1', '192.168.77.2', 24] : ['fd77::1', 'fd77::2', 64, 'nodad'];
    await ip(node, 'address', 'add', `${gateway}/${length}`, 'dev', 'br1', ...more.map(String));
    await ip(outside, 'address', 'add', `${source}/${length}`, 'dev', 'behind', ...more.map(String));
    const own = `${node.addresses[family]}/${family === 'IPv4' ? 32 : 128}`;
    await ip(outside, 'route', 'add', own, 'via', String(gateway), 'src', String(source));
  }
  const answers = async (): Promise<readonly ProbeResult[]> =>
    Promise.all(
      ipFamilies.map((family) => {
        const probe = { protocol: 'tcp', address: node.addresses[family] ?? '', port: nodePort, timeout: 900 } as const;
        return client.probe(probe);
      }),
    );
  await until(async () => (await answers()).every(({ status }) => status === 'answered'));
  expect(await rules()).toContain(clusterIp);
  for (const asks of ['0', '1']) {
    for (const name of ['iptables', 'ip6tables']) {
      const path = `/proc/sys/net/bridge/bridge-nf-call-${name}`;
      expect(await node.run('sh', ['-c', `echo ${asks} > ${path}`])).toMatchObject({ exitCode: 0 });
    }
    expect(await answers(), asks).toMatchObject([{ by: 'echo' }, { by: 'echo' }]);
  }
  await ip(node, 'link', 'del', 'port1');
  await ip(node, 'link', 'del', 'br1');
  await running.stop();
});
