import { type ApplyOutcome, type DataplaneBackend } from '@switchyard/core/engine';
import { diffTables, type ForwardingTable, type IpFamily, ipFamilies, parseIp } from '@switchyard/core';
import { type PortSpec, service, slice, tableOf, tableOptions } from '@switchyard/core/testing';
import { connectWhile, createSite, type ProbeRequest, type Site, sitePort, type Traffic } from '@switchyard/lab';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { kubeProxyContent, kubeProxyJumps } from '../../bench/kube-proxy-content.ts';
import { iptablesBackend } from '../../src/index.ts';
import { hostOf } from './site-host.ts';
import { signal, variant } from './support.ts';

const clusterIp: Readonly<Record<IpFamily, string>> = { IPv4: '10.96.0.10', IPv6: 'fd00:10:96::10' };
const vip: Readonly<Record<IpFamily, string>> = { IPv4: '198.51.100.1', IPv6: '2001:db8:100::1' };
const podCidr = '10.244.0.0/16';

let site: Site;

beforeAll(async () => {
  site = await createSite(`ipt0${variant.slice(0, 1)}`, signal);
  await site.lab.routeToNode([...Object.values(vip), ...Object.values(clusterIp)].map(parseIp), site.node);
});

afterAll(() => site[Symbol.asyncDispose]());

/** Processes of a test that still hold something. */
const open: DataplaneBackend[] = [];

afterEach(async () => {
  for (const family of ipFamilies) await (await openBackend(family)).cleanup(signal);
  for (const backend of open.splice(0)) await backend[Symbol.asyncDispose]();
});

type Pod = 'near' | 'far';
const ports: readonly PortSpec[] = [
  { name: 'tcp', port: 80, nodePort: 30080 },
  { name: 'udp', port: 80, nodePort: 30080, protocol: 'UDP' },
];

/** A Service on TCP and UDP with a cluster IP, a NodePort and a load-balancer IP, behind these pods, and others around it. */
function table(ipFamily: IpFamily, pods: readonly Pod[], spec: { readonly hasVip?: boolean } = {}): ForwardingTable {
  const endpoints = pods.map((pod) => ({
    ip: site[pod].addresses[ipFamily] ?? '',
    node: pod === 'near' ? 'n1' : 'n2',
  }));
  const others = Array.from({ length: 20 }, (_, index) => `shop/other-${index}`);

  const otherIp = (index: number): string =>
    ipFamily === 'IPv4' ? `10.96.1.${index + 1}` : `fd00:10:96::1:${index + 1}`;
  return tableOf(
    {
      services: [
        service('shop/cart', {
          clusterIps: [clusterIp[ipFamily]],
          ...(spec.hasVip === false ? {} : { loadBalancerIps: [vip[ipFamily]] }),
          ports,
        }),
        ...others.map((key, index) => service(key, { clusterIps: [otherIp(index)] })),
      ],
      slices: [
        slice('shop/cart', {
          ipFamily,
          ports: ports.map(({ name = '', protocol = 'TCP' }) => ({ name, protocol, port: sitePort })),
          endpoints,
        }),
        ...others.map((key) => slice(key, { ipFamily, endpoints })),
      ],
    },
    tableOptions({ ipFamily }),
  );
}

async function openBackend(ipFamily: IpFamily): Promise<DataplaneBackend> {
  const backend = await iptablesBackend.open(hostOf(site), ipFamily, signal);
  open.push(backend);
  return backend;
}

/** A process with no memory of what it wrote before: both families, and the last tables given to them. */
class Process {
  readonly #backends: Readonly<Record<IpFamily, DataplaneBackend>>;
  readonly #last = new Map<IpFamily, ForwardingTable>();

  private constructor(backends: Readonly<Record<IpFamily, DataplaneBackend>>) {
    this.#backends = backends;
  }

  static async start(): Promise<Process> {
    return new Process({ IPv4: await openBackend('IPv4'), IPv6: await openBackend('IPv6') });
  }

  /** Number of writes in both families; the first apply of a process reads everything. */
  async apply(...pods: readonly Pod[]): Promise<number> {
    let writes = 0;
    for (const family of ipFamilies) writes += written(await this.#applyOne(family, table(family, pods)));
    return writes;
  }

  #applyOne(family: IpFamily, next: ForwardingTable): Promise<ApplyOutcome> {
    const last = this.#last.get(family);
    this.#last.set(family, next);
    const delta = diffTables(last, next);
    const scope = last === undefined ? ({ kind: 'full' } as const) : ({ kind: 'delta', delta } as const);
    return this.#backends[family].apply({ table: next, scope }, signal);
  }
}

function written(outcome: ApplyOutcome): number {
  expect(outcome).toMatchObject({ status: 'applied' });
  return outcome.status === 'applied' ? outcome.writes : Number.NaN;
}

/** To every kind of frontend, TCP and UDP, from outside the cluster. */
function requests(families: readonly IpFamily[]): readonly ProbeRequest[] {
  return families.flatMap((family) => {
    const places = [
      { address: clusterIp[family], port: 80 },
      { address: vip[family], port: 80 },
      { address: site.node.addresses[family] ?? '', port: 30080 },
    ];
    return (['tcp', 'udp'] as const).flatMap((protocol) => places.map((place) => ({ protocol, ...place })));
  });
}

/** New connections while `work` goes on. */
function during(
  work: (count: () => number) => Promise<void>,
  families: readonly IpFamily[] = ipFamilies,
): Promise<Traffic> {
  return connectWhile({ prober: site.client, requests: requests(families), lines: 1 }, work);
}

async function restore(text: string): Promise<void> {
  const result = await site.node.run(`iptables-${variant}-restore`, ['--noflush', '-w', '5'], { stdin: text });
  expect(result.exitCode, result.stderr).toBe(0);
}

const states: readonly (readonly Pod[])[] = [['near'], ['near', 'far'], ['far'], ['near', 'far']];

describe(`no connection is lost, TCP or UDP, IPv4 or IPv6, iptables-${variant}`, () => {
  test('when processes with no memory adopt what is there, one after another: and none of them writes', async () => {
    await (await Process.start()).apply('near', 'far');
    const traffic = await during(async (count) => {
      for (let round = 0; round < 5 || count() < 1000; round++) {
        expect(await (await Process.start()).apply('near', 'far')).toBe(0);
      }
    });
    expect(traffic.failed).toEqual([]);
  });

  test('when endpoints come and go, again and again', async () => {
    const agent = await Process.start();
    await agent.apply('near', 'far');
    const traffic = await during(async (count) => {
      for (let round = 0; round < 5 || count() < 1000; round++) {
        for (const pods of states) await agent.apply(...pods);
      }
    });
    expect(traffic.failed).toEqual([]);
  });

  test("when our first rules replace kube-proxy's, and kube-proxy's replace ours", async () => {
    await restore(kubeProxyJumps);
    // kube-proxy's content has no load-balancer IP here: the generator knows cluster IPs and NodePorts.
    const theirs = kubeProxyContent(table('IPv4', ['near', 'far'], { hasVip: false }), podCidr);
    await restore(theirs);
    const common = requests(['IPv4']).filter(({ address }) => address !== vip.IPv4);
    const traffic = await connectWhile({ prober: site.client, requests: common, lines: 1 }, async (count) => {
      for (let round = 0; round < 3 || count() < 1000; round++) {
        const backend = await openBackend('IPv4');
        const next = table('IPv4', ['near', 'far']);
        written(await backend.apply({ table: next, scope: { kind: 'full' } }, signal));
        await restore(theirs);
      }
    });
    expect(traffic.failed).toEqual([]);
  });

  test('when chains are damaged by others and a process finds them so', async () => {
    const agent = await Process.start();
    await agent.apply('near', 'far');
    const traffic = await during(async (count) => {
      for (let round = 0; round < 3 || count() < 500; round++) {
        // An entry of a Service without traffic here.
        await restore('*nat\n-A KUBE-SERVICES -d 10.96.9.9/32 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ\nCOMMIT\n');
        expect(await (await Process.start()).apply('near', 'far')).toBeGreaterThan(0);
      }
    });
    expect(traffic.failed).toEqual([]);
  });
});

test('cleanup removes all own rules and nothing else, at once: Services stop answering, foreign rules stay', async () => {
  await restore('*nat\n:SITE-RULES - [0:0]\n-A PREROUTING -d 192.0.2.77/32 -j SITE-RULES\nCOMMIT\n');
  const before = await save();
  const agent = await Process.start();
  await agent.apply('near', 'far');
  const request = { protocol: 'tcp', address: clusterIp.IPv4, port: 80, timeout: 300 } as const;
  expect((await site.client.probe(request)).status).toBe('answered');
  for (const family of ipFamilies) await (await openBackend(family)).cleanup(signal);
  expect((await site.client.probe(request)).status).not.toBe('answered');
  expect(await save()).toEqual(before);
});

/** Chains and rules of the nat and filter tables, without what is different at every look. */
async function save(): Promise<readonly string[]> {
  const result = await site.node.run(`iptables-${variant}-save`, []);
  return result.stdout
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.replace(/ \[\d+:\d+\]$/, ''));
}
