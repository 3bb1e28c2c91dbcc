import { type ApplyOutcome, type DataplaneBackend } from '@switchyard/core/engine';
import { type ForwardingTable, type IpFamily, ipFamilies, parseIp } from '@switchyard/core';
import { type ServiceSpec, service, slice, tableOf, tableOptions } from '@switchyard/core/testing';
import {
  createProber,
  createSite,
  type LabHost,
  type ProbeRequest,
  type Site,
  sitePort,
  startEchoServer,
} from '@switchyard/lab';
import { createPacketCounters } from '@switchyard/netfilter';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { iptablesBackend } from '../../src/index.ts';
import { nfacctNames } from '../../src/render/names.ts';
import { hostOf } from './site-host.ts';
import { signal, variant } from './support.ts';

// Effects of rules on real packets that no scenario can observe.

const clusterIps: Readonly<Record<IpFamily, string>> = { IPv4: '10.96.0.10', IPv6: 'fd00:10:96::10' };
const loopbackPort = 7777;

let site: Site;
let netns: string;

beforeAll(async () => {
  site = await createSite(`iptp${variant.slice(0, 1)}`, signal);
  netns = `/run/netns/${site.node.namespace}`;
  await site.lab.routeToNode(Object.values(clusterIps).map(parseIp), site.node);
});
afterAll(() => site[Symbol.asyncDispose]());

beforeEach(async () => {
  for (const family of ipFamilies) {
    await using backend = await openBackend(family);
    await backend.cleanup(signal);
  }
});

type Pod = 'near' | 'far';

interface Given {
  readonly ipFamily?: IpFamily;
  readonly pods: readonly Pod[];
  readonly service?: ServiceSpec;
  readonly localhostNodePorts?: boolean;
}

function table({ ipFamily = 'IPv4', pods, service: spec, localhostNodePorts = false }: Given): ForwardingTable {
  const ports = (['TCP', 'UDP'] as const).map((protocol) => ({ name: protocol.toLowerCase(), protocol }));
  const services = [
    service('shop/cart', {
      clusterIps: [clusterIps[ipFamily]],
      ports: ports.map((port) => ({ ...port, port: 80, nodePort: 30080 })),
      ...spec,
    }),
  ];
  const endpoints = pods.map((pod) => ({ ip: addressOf(site[pod], ipFamily), node: pod === 'near' ? 'n1' : 'n2' }));
  const slices = [
    slice('shop/cart', { ipFamily, ports: ports.map((port) => ({ ...port, port: sitePort })), endpoints }),
  ];
  return tableOf({ services, slices }, tableOptions({ ipFamily, localhostNodePorts }));
}

const addressOf = (host: LabHost, ipFamily: IpFamily): string => host.addresses[ipFamily] ?? '';

function openBackend(ipFamily: IpFamily): Promise<DataplaneBackend> {
  return iptablesBackend.open(hostOf(site), ipFamily, signal);
}

/** Writes one table, as a process that knows nothing of what is there. */
async function apply(given: Given): Promise<ApplyOutcome['status']> {
  await using backend = await openBackend(given.ipFamily ?? 'IPv4');
  return (await backend.apply({ table: table(given), scope: { kind: 'full' } }, signal)).status;
}

async function run(host: LabHost, line: string): Promise<string> {
  const [file = '', ...args] = line.split(' ');
  const { exitCode, stdout, stderr } = await host.run(file, args);
  if (exitCode !== 0) throw new Error(`${line}: ${stderr}`);
  return stdout;
}

describe('NodePorts on loopback', () => {
  const atLoopback = (protocol: 'tcp' | 'udp'): ProbeRequest => ({
    protocol,
    address: '127.0.0.1',
    source: '127.0.0.1',
    port: 30080,
  });

  beforeAll(() => run(site.node, 'sysctl -qw net.ipv4.conf.all.route_localnet=1'));
  afterAll(() => run(site.node, 'sysctl -qw net.ipv4.conf.all.route_localnet=0'));

  test.each(['near', 'far'] as const)(
    'lead the node itself to a pod (%s), masqueraded, and are counted',
    async (pod) => {
      expect(await apply({ pods: [pod], localhostNodePorts: true })).toBe('applied');
      const before = counted();
      for (const protocol of ['tcp', 'udp'] as const) {
        const result = await site.self.probe(atLoopback(protocol));
        expect(result).toMatchObject({ status: 'answered', by: pod });
        expect(result).not.toMatchObject({ seenSource: '127.0.0.1' });
      }
      expect(counted() - before).toBe(2);
    },
  );

  test('with policy Local reach pods of other nodes', async () => {
    await apply({ pods: ['far'], service: { external: 'Local' }, localhostNodePorts: true });
    expect(await site.self.probe(atLoopback('tcp'))).toMatchObject({ status: 'answered', by: 'far' });
  });

  test('are refused without endpoints', async () => {
    await apply({ pods: [], localhostNodePorts: true });
    expect(await site.self.probe(atLoopback('tcp'))).toMatchObject({ status: 'refused' });
  });

  test('are left to other programs where they are switched off', async () => {
    using _server = served(30080, '127.0.0.1');
    await apply({ pods: [] });
    await expect.poll(() => site.self.probe(atLoopback('tcp'))).toMatchObject({ status: 'answered', by: 'loopback' });
  });

  test('do not open what listens on loopback to neighbours (fact 31)', async () => {
    using _server = served(loopbackPort, '127.0.0.1');
    const neighbour = site.lab.apiServer;
    const address = addressOf(site.node, 'IPv4');
    // To it 127.0.0.1 is a machine like any other.
    await run(neighbour, 'sysctl -qw net.ipv4.conf.all.route_localnet=1');
    await run(neighbour, 'ip addr del 127.0.0.1/8 dev lo');
    await run(neighbour, `ip route add 127.0.0.1/32 via ${address}`);
    await using prober = await createProber(neighbour, signal);
    const request = { protocol: 'tcp', address: '127.0.0.1', port: loopbackPort, timeout: 500 } as const;
    const withRules: Given = { pods: ['near'], localhostNodePorts: true };
    await apply(withRules);
    await run(site.node, `iptables-${variant} -F KUBE-FIREWALL`);
    await expect.poll(() => prober.probe(request)).toMatchObject({ by: 'loopback' });
    await apply(withRules);
    expect(await prober.probe(request)).toMatchObject({ status: 'timeout' });
    // The node itself is not shut out.
    expect(await site.self.probe(request)).toMatchObject({ status: 'answered', by: 'loopback' });
  });

  function counted(): number {
    return createPacketCounters({ netns }).read().get(nfacctNames.localhostNodePorts)?.packets ?? 0;
  }

  /** A program on the node that listens there. */
  function served(port: number, host: string): Disposable {
    const process = startEchoServer(site.node, { pod: 'loopback', tcp: [port], host });
    return { [Symbol.dispose]: () => void process.stop() };
  }
});

describe.each(ipFamilies)('%s', (ipFamily) => {
  const nodePort = (): ProbeRequest => ({ protocol: 'tcp', address: addressOf(site.node, ipFamily), port: 30080 });
  const clusterIp: ProbeRequest = { protocol: 'tcp', address: clusterIps[ipFamily], port: 80 };
  const program = `${ipFamily === 'IPv4' ? 'iptables' : 'ip6tables'}-${variant}`;

  test('a NodePort works although the policy of FORWARD is to drop (fact 76)', async () => {
    await run(site.node, `${program} -P FORWARD DROP`);
    try {
      await apply({ ipFamily, pods: ['near'] });
      expect(await site.client.probe(nodePort())).toMatchObject({ status: 'answered', by: 'near' });
      const direct = { ...nodePort(), address: addressOf(site.far, ipFamily), port: sitePort, timeout: 300 };
      expect(await site.pod.probe(direct), 'what is no Service traffic').toMatchObject({ status: 'timeout' });
    } finally {
      await run(site.node, `${program} -P FORWARD ACCEPT`);
    }
  });

  test('a pod that reaches itself by its Service is masqueraded, others are not', async () => {
    await apply({ ipFamily, pods: ['near'] });
    const own = await site.pod.probe(clusterIp);
    expect(own).toMatchObject({ status: 'answered', by: 'near' });
    expect(own).not.toMatchObject({ seenSource: addressOf(site.near, ipFamily) });
    await apply({ ipFamily, pods: ['far'] });
    const seenSource = addressOf(site.near, ipFamily);
    expect(await site.pod.probe(clusterIp)).toMatchObject({ status: 'answered', by: 'far', seenSource });
  });

  test('with session affinity a client stays where it was, at all frontends, until that endpoint goes (fact 60)', async () => {
    await apply({ ipFamily, pods: ['near', 'far'], service: { affinitySeconds: 60 } });
    const first = await site.client.probe(nodePort());
    const by = first.status === 'answered' ? first.by : undefined;
    expect(['near', 'far']).toContain(by);
    for (let again = 0; again < 12; again++) {
      const request = again % 2 === 0 ? nodePort() : clusterIp;
      expect(await site.client.probe(request)).toMatchObject({ status: 'answered', by });
    }
    const other: Pod = by === 'near' ? 'far' : 'near';
    await apply({ ipFamily, pods: [other], service: { affinitySeconds: 60 } });
    expect(await site.client.probe(nodePort())).toMatchObject({ status: 'answered', by: other });
  });

  test('established connections outlive the last endpoint, new ones are refused (fact 53)', async () => {
    await apply({ ipFamily, pods: ['near'] });
    const { connection } = await site.client.open(clusterIp);
    if (connection === undefined) return expect.fail('no connection');
    expect(await connection.exchange('before')).toEqual({ status: 'echoed' });
    await apply({ ipFamily, pods: [] });
    expect(await site.client.probe(clusterIp)).toMatchObject({ status: 'refused' });
    expect(await connection.exchange('after')).toEqual({ status: 'echoed' });
    await connection.close();
  });
});
