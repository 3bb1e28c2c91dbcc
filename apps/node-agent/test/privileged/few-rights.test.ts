import { ipFamilies } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { kubeProxySave } from '@switchyard/netfilter/testing';
import {
  createProber,
  type LabCluster,
  type LabNode,
  type LabPod,
  type LabProcess,
  type Prober,
  startCluster,
  startEchoServer,
  waitForAgents,
} from '@switchyard/lab';
import { mkdir, symlink } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type LogLine, readLog, until } from './agent-log.ts';
import { program, withRights } from './with-rights.ts';

const { signal } = new AbortController();
let cluster: LabCluster;
let node: LabNode;
let pod: LabPod;
let client: Prober;
let netAdminOnly: string;
let healthCheckNodePort: number;

beforeAll(async () => {
  cluster = await startCluster({ name: 'rights', nodes: 1, ipFamilies }, signal);
  [node] = cluster.lab.nodes as [LabNode];
  netAdminOnly = await withRights(cluster, 'net_admin');
  pod = await cluster.lab.addPod(node, 'echo');
  startEchoServer(pod, { pod: 'echo', tcp: [8080], udp: [8080] });
  client = await createProber(cluster.lab.client, signal);
  const spec = {
    type: 'LoadBalancer' as const,
    externalTrafficPolicy: 'Local' as const,
    ipFamilyPolicy: 'PreferDualStack' as const,
    sessionAffinity: 'ClientIP' as const,
    ports: (['TCP', 'UDP'] as const).map((protocol) => ({
      name: protocol.toLowerCase(),
      port: 80,
      nodePort: 30080,
      protocol,
    })),
  };
  const made = await cluster.api.create(
    apiResources.services,
    { metadata: { name: 'echo', namespace: 'default' }, spec },
    signal,
  );
  healthCheckNodePort = made.spec?.healthCheckNodePort ?? 0;
  for (const family of ipFamilies) {
    const metadata = {
      name: family.toLowerCase(),
      namespace: 'default',
      labels: { 'kubernetes.io/service-name': 'echo' },
    };
    const ports = (['TCP', 'UDP'] as const).map((protocol) => ({ name: protocol.toLowerCase(), port: 8080, protocol }));
    const endpoints = [{ addresses: [pod.addresses[family]!], nodeName: node.nodeName, conditions: { ready: true } }];
    await cluster.api.create(apiResources.endpointSlices, { metadata, addressType: family, ports, endpoints }, signal);
  }
});

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
});

async function run(file: string, ...args: readonly string[]): Promise<string> {
  const result = await node.run(file, args);
  expect(result.exitCode, `${file} ${args.join(' ')}: ${result.stderr}`).toBe(0);
  return result.stdout.trim();
}

/** The only requested setting of the kernel. */
const established = '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established';
/** Requested settings of the kernel's connection tracking. */
const timeouts = ['--conntrack-tcp-timeout-established=7200s', '--conntrack-tcp-timeout-close-wait=0s'];

const warnings = async (agent: LabProcess): Promise<readonly LogLine[]> =>
  (await readLog(agent)).filter(({ level }) => level !== 'info' && level !== 'debug');

async function serves(): Promise<void> {
  for (const family of ipFamilies) {
    const address = node.addresses[family] ?? '';
    for (const protocol of ['tcp', 'udp'] as const) {
      expect(await client.probe({ protocol, address, port: 30080 })).toMatchObject({ status: 'answered', by: 'echo' });
    }
    const health = await client.probe({ protocol: 'http', address, port: healthCheckNodePort });
    expect(health).toMatchObject({ status: 'answered', httpStatus: 200 });
  }
}

/** Starts an agent with CAP_NET_ADMIN alone, which ends with the test at the latest: the next one could not start beside it. */
async function startAgent(args: readonly string[]): Promise<LabProcess> {
  const agent = cluster.startAgent(node, { program: netAdminOnly, args });
  onTestFinished(() => agent.stop());
  await waitForAgents(cluster.lab, [agent], signal);
  return agent;
}

describe('with CAP_NET_ADMIN alone and read-only /proc/sys and /sys', () => {
  test('the agent does everything, and what it cannot set is one warning each', async () => {
    const args = [...timeouts, '--oom-score-adj=-999'];
    const before = await run('cat', established);
    const agent = await startAgent(args);
    expect(
      await run('sh', '-c', `grep -E "^(CapEff|CapBnd|NoNewPrivs)" /proc/${agent.pid}/status | tr -s '[:space:]' ' '`),
    ).toBe('CapEff: 0000000000001000 CapBnd: 0000000000001000 NoNewPrivs: 1');
    await serves();
    // Drift is noticed, healed, and the age kept: all of it netlink.
    await run('nft', 'flush', 'ruleset');
    await until(async () => (await readLog(agent)).filter(({ msg }) => msg === 'drift healed').length === 2);
    await serves();
    expect((await warnings(agent)).filter(({ msg }) => !msg.startsWith('drift'))).toMatchObject([
      { level: 'warn', msg: expect.stringContaining('oom_score_adj stays as it is') as string },
      {
        level: 'warn',
        msg: 'conntrack settings stay as they are',
        refused: [`cannot write 7200 to ${established}: EROFS`],
      },
    ]);
    expect(await run('cat', established)).toBe(before);
  });

  test('nothing is left to warn of after --init-only with full rights, which changes no rule', async () => {
    await run('nft', 'flush', 'ruleset');
    const limits = ['--conntrack-max-per-core=0', '--oom-score-adj=0']; // the machine's own
    const flags = ['--proxy-mode=nftables', '--kubeconfig=/nowhere', '--logging-format=json', ...limits, ...timeouts];
    const result = await node.run(program, [...flags, '--init-only']);
    expect(result.exitCode, result.stderr).toBe(0);
    expect(
      result.stderr
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as LogLine).msg),
    ).toEqual(['kernel settings changed', 'this host can run the dataplane; no rule was made']);
    expect(await run('cat', established)).toBe('7200');
    expect(await run('nft', 'list', 'tables')).toBe('');
    const agent = await startAgent(timeouts);
    await serves();
    expect(await warnings(agent)).toEqual([]);
  });
});

test('with CAP_NET_ADMIN alone /debug/losses shows what Services refuse, by their counters, and says what it lacks', async () => {
  const ports = [{ port: 80, nodePort: 30081 }];
  const empty = { metadata: { name: 'empty', namespace: 'default' }, spec: { type: 'NodePort' as const, ports } };
  await cluster.api.create(apiResources.services, empty, signal);
  await startAgent(timeouts);
  const watching = run('curl', '--silent', '--no-buffer', 'http://127.0.0.1:10249/debug/losses?seconds=5');
  const refused = { protocol: 'tcp', address: node.addresses.IPv4 ?? '', port: 30081 } as const;
  for (let count = 0; count < 8; count++) {
    await new Promise((resolve) => setTimeout(resolve, 500)); // the watch may begin late
    expect(await client.probe(refused)).toMatchObject({ status: 'refused' });
  }
  const shown = await watching;
  expect(shown).toMatch(/^# Dropped packets cannot be watched: .*EPERM/);
  expect(shown).toMatch(
    / - +default\/empty:\/TCP +\S+ +node +\d+ +noEndpoints +no endpoint of default\/empty:\/TCP is usable/,
  );
});

describe('taking over from kube-proxy with CAP_NET_ADMIN alone', () => {
  const service = { ipFamily: 'IPv4', name: 'x', clusterIp: '10.96.9.9', port: 80, nodePort: 30999 } as const;
  const saved = kubeProxySave([{ ...service, protocol: 'tcp', endpoint: '10.244.9.9:80' }]);

  async function takeOver(variant: 'nft' | 'legacy'): Promise<LabProcess> {
    const loaded = await node.run(`iptables-${variant}-restore`, [], { stdin: saved });
    expect(loaded.exitCode, loaded.stderr).toBe(0);
    const agent = await startAgent(timeouts);
    await until(async () => (await readLog(agent)).some(({ msg }) => msg.includes('what kube-proxy left')));
    await serves();
    await agent.stop();
    return agent;
  }

  test('rules of iptables-nft go', async () => {
    const agent = await takeOver('nft');
    expect(await warnings(agent)).toEqual([]);
    expect(await run('iptables-nft-save')).not.toMatch(/^:KUBE-SERVICES/m);
  });

  test('rules of iptables-legacy stay, with a warning that names the right that is missing; ours work', async () => {
    const agent = await takeOver('legacy');
    expect(await warnings(agent)).toMatchObject([
      {
        msg: 'what kube-proxy left could not be removed',
        errors: [expect.stringContaining('iptables-legacy, which needs CAP_NET_RAW besides CAP_NET_ADMIN') as string],
      },
    ]);
    expect(await run('iptables-legacy-save')).toMatch(/^:KUBE-SERVICES/m);
  });
});

test('a host that cannot run the dataplane keeps its settings: they are made after it was asked', async () => {
  const programs = `${cluster.lab.folder}/without-iptables`;
  await mkdir(programs);
  for (const name of ['dirname', 'readlink', 'uname']) await symlink(`/usr/bin/${name}`, `${programs}/${name}`);
  const before = await run('cat', established);
  const flags = ['--proxy-mode=iptables', `--kubeconfig=${cluster.insideKubeconfig}`, '--conntrack-max-per-core=0'];
  const wanted = ['--oom-score-adj=0', `--conntrack-tcp-timeout-established=${Number(before) + 100}s`];
  const result = await node.run('env', [`PATH=${programs}`, program, ...flags, ...wanted]);
  expect(result).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('this host cannot run') as string });
  expect(await run('cat', established)).toBe(before);
});

test.each([
  ['how many flows the machine tracks', '/proc/sys/net/netfilter/nf_conntrack_max', 'Permission denied'],
  ['the hash table of flows', '/sys/module/nf_conntrack/parameters/hashsize', 'Operation not supported'],
])('a network namespace other than the first cannot change %s: agents of labs cannot either', async (...row) => {
  const [, file, refusal] = row;
  const result = await node.run('sh', ['-c', `value=$(cat ${file}); /bin/echo $value > ${file}`]); // the value it has, should it ever be allowed
  expect(result.exitCode).not.toBe(0);
  expect(result.stderr).toContain(refusal);
});
