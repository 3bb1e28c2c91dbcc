import { type IpFamily, ipFamilies, millis, systemClock } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { kubeProxySave, type LeftService } from '@switchyard/netfilter/testing';
import {
  createProber,
  type LabCluster,
  type LabNode,
  type LabPod,
  type Prober,
  type ProbeResult,
  startCluster,
  startEchoServer,
  waitForAgents,
} from '@switchyard/lab';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readLog, until } from './agent-log.ts';
import { kubeProxyTable } from './kube-proxy-table.ts';

const { signal } = new AbortController();
let cluster: LabCluster;
let node: LabNode;
let pods: Readonly<Record<'stale' | 'right', LabPod>>;
let client: Prober;
let self: Prober;
const nodePorts = { tcp: 30080, udp: 30081 };
const clusterIps: Record<string, string> = {};

beforeAll(async () => {
  cluster = await startCluster({ name: 'takeover', nodes: 1, ipFamilies }, signal);
  [node] = cluster.lab.nodes as [LabNode];
  const pod = async (name: string): Promise<LabPod> => {
    const added = await cluster.lab.addPod(node, name);
    startEchoServer(added, { pod: name, tcp: [8080], udp: [8080] });
    return added;
  };
  pods = { stale: await pod('stale'), right: await pod('right') };
  client = await createProber(cluster.lab.client, signal);
  self = await createProber(node, signal);
  const ports = [
    { name: 'tcp', port: 80, nodePort: nodePorts.tcp, protocol: 'TCP' as const },
    { name: 'udp', port: 80, nodePort: nodePorts.udp, protocol: 'UDP' as const },
  ];
  const spec = { type: 'NodePort' as const, ipFamilyPolicy: 'PreferDualStack' as const, ports };
  const made = await cluster.api.create(
    apiResources.services,
    { metadata: { name: 'echo', namespace: 'default' }, spec },
    signal,
  );
  for (const ip of made.spec?.clusterIPs ?? []) clusterIps[ip.includes(':') ? 'IPv6' : 'IPv4'] = ip;
  for (const family of ipFamilies) await expose(family);
});

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await self?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
});

async function expose(family: IpFamily): Promise<void> {
  const metadata = {
    name: `echo-${family.toLowerCase()}`,
    namespace: 'default',
    labels: { 'kubernetes.io/service-name': 'echo' },
  };
  const ports = [
    { name: 'tcp', port: 8080, protocol: 'TCP' as const },
    { name: 'udp', port: 8080, protocol: 'UDP' as const },
  ];
  const endpoints = [
    { addresses: [pods.right.addresses[family]!], nodeName: node.nodeName, conditions: { ready: true } },
  ];
  await cluster.api.create(apiResources.endpointSlices, { metadata, addressType: family, ports, endpoints }, signal);
}

/** Rules of a kube-proxy that was stopped some time ago: they lead to a former endpoint. */
function left(ipFamily: IpFamily): readonly LeftService[] {
  const ip = pods.stale.addresses[ipFamily]!;
  const endpoint = ipFamily === 'IPv4' ? `${ip}:8080` : `[${ip}]:8080`;
  return (['tcp', 'udp'] as const).map((protocol) => ({
    ipFamily,
    name: `echo:${protocol}`,
    clusterIp: clusterIps[ipFamily]!,
    port: 80,
    nodePort: nodePorts[protocol],
    protocol,
    endpoint,
  }));
}

async function run(file: string, args: readonly string[], stdin = ''): Promise<string> {
  const result = await node.run(file, args, { stdin });
  expect(result.exitCode, `${file} ${args.join(' ')}: ${result.stderr}`).toBe(0);
  return result.stdout;
}

const programs: Readonly<Record<IpFamily, string>> = { IPv4: 'iptables', IPv6: 'ip6tables' };

const emptyTables = ['nat', 'filter', 'mangle'].map((table) => `*${table}\nCOMMIT\n`).join('');

/** One state that kube-proxy may have left a node in. */
interface Situation {
  readonly load: () => Promise<void>;
  /** Everything there is of it, and of those who share its tables. */
  readonly save: () => Promise<string>;
  /** Log lines about kube-proxy. */
  readonly ofKubeProxy: RegExp;
  readonly ofOthers: RegExp;
}

function iptables(variant: 'nft' | 'legacy'): Situation {
  return {
    load: async () => {
      for (const family of ipFamilies)
        await run(`${programs[family]}-${variant}-restore`, [], kubeProxySave(left(family)));
    },
    save: async () => {
      const texts = await Promise.all(ipFamilies.map((family) => run(`${programs[family]}-${variant}-save`, [])));
      return texts.join('');
    },
    ofKubeProxy: /^:KUBE-(?:SVC|SEP|EXT|SERVICES|NODEPORTS|POSTROUTING|MARK-MASQ|FORWARD|PROXY)/m,
    ofOthers: /^:KUBE-FIREWALL[^]*^-A INPUT .* -j SITE-RULES$[^]*^:KUBE-MARK-DROP/m,
  };
}

const situations: Readonly<Record<string, Situation>> = {
  'the iptables mode on nf_tables': iptables('nft'),
  'the iptables mode on the legacy tables': iptables('legacy'),
  'the nftables mode': {
    load: async () => {
      for (const family of ipFamilies) await run('nft', ['-f', '-'], kubeProxyTable(left(family)));
    },
    save: () => run('nft', ['list', 'tables']),
    ofKubeProxy: /kube-proxy/,
    ofOthers: /^table inet switchyard$/m,
  },
};

const kinds = ipFamilies.flatMap((family) =>
  (['tcp', 'udp'] as const).flatMap((protocol) => [
    { who: () => client, protocol, address: () => node.addresses[family]!, port: nodePorts[protocol] },
    { who: () => self, protocol, address: () => clusterIps[family]!, port: 80 },
  ]),
);

/** Connections one after another, TCP and UDP, both families, from outside and from the node, while `work` runs. */
async function during(work: () => Promise<void>): Promise<readonly ProbeResult[]> {
  const results: ProbeResult[] = [];
  const done = new AbortController();
  const lines = kinds.map(async ({ who, protocol, address, port }) => {
    while (!done.signal.aborted) {
      results.push(await who().probe({ protocol, address: address(), port }));
      await systemClock.sleep(millis(3), signal);
    }
  });
  await work().finally(() => done.abort());
  await Promise.all(lines);
  return results;
}

const by = (result: ProbeResult): string => (result.status === 'answered' ? (result.by ?? '?') : result.status);

describe.each(Object.entries(situations))('after %s', (_, { load, save, ofKubeProxy, ofOthers }) => {
  beforeEach(async () => {
    await run('nft', ['flush', 'ruleset']);
    for (const family of ipFamilies) await run(`${programs[family]}-legacy-restore`, [], emptyTables);
    await load();
  });

  test('no connection fails while the agent takes over; then the rules are gone, those of others are not', async () => {
    await until(
      async () =>
        by(await client.probe({ protocol: 'tcp', address: node.addresses.IPv4!, port: nodePorts.tcp })) === 'stale',
    );
    const held = await client.open({ protocol: 'tcp', address: node.addresses.IPv4!, port: nodePorts.tcp });
    const results = await during(async () => {
      await systemClock.sleep(millis(300), signal);
      const agent = cluster.startAgent(node);
      await waitForAgents(cluster.lab, [agent], signal);
      await until(async () => (await readLog(agent)).some(({ msg }) => msg === 'removed what kube-proxy left'));
      await systemClock.sleep(millis(300), signal);
      expect((await readLog(agent)).filter(({ level }) => level === 'warn')).toEqual([]);
      await agent.stop();
    });
    expect(new Set(results.map(by))).toEqual(new Set(['stale', 'right']));
    expect(results.slice(-kinds.length).map(by)).toEqual(kinds.map(() => 'right'));
    expect(results.length).toBeGreaterThan(300);
    expect(await save()).not.toMatch(ofKubeProxy);
    expect(await save()).toMatch(ofOthers);
    // A connection that kube-proxy's rules translated goes on.
    expect(held.connection && (await held.connection.exchange('still there?'))).toEqual({ status: 'echoed' });
    await held.connection?.close();
  });

  test('they stay if configured, and the rules of the agent still come first', async () => {
    const agent = cluster.startAgent(node, { args: ['--switchyard-kube-proxy-rules=keep'] });
    await waitForAgents(cluster.lab, [agent], signal);
    const answers = new Set<string>();
    for (let round = 0; round < 3; round++) {
      for (const { who, protocol, address, port } of kinds) {
        answers.add(by(await who().probe({ protocol, address: address(), port })));
      }
    }
    expect(await save()).toMatch(ofKubeProxy);
    expect(answers).toEqual(new Set(['right']));
    await agent.stop();
  });
});
