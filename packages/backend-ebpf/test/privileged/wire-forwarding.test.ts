import { type IpFamily, ipFamilies, parseIp } from '@switchyard/core';
import { clusterCidrs, type ProbeAnswer, serviceCidrs, sitePort } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WirePath } from '../../src/kernel/wire/wire-path.ts';
import { hostPort, netnsOf, WireSite } from './wire-site.ts';
import { flushConntrack, runClient } from './wire-clients.ts';
import type { ActionText, WireService } from './wire-maps.ts';

/** The last digit identifies the Service. */
const addresses: Readonly<
  Record<IpFamily, { readonly cluster: (n: number) => string; readonly outer: (n: number) => string }>
> = {
  IPv4: { cluster: (n) => `10.96.0.${n}`, outer: (n) => `198.51.100.${n}` },
  IPv6: { cluster: (n) => `fd00:10:96::${n}`, outer: (n) => `2001:db8:51::${n}` },
};

const numbers = {
  shop: 1,
  local: 2,
  away: 3,
  none: 4,
  self: 5,
  host: 6,
  ranged: 7,
  barred: 8,
  sticky: 9,
  closed: 10,
  shut: 11,
} as const;
type Name = keyof typeof numbers;

let wire: WireSite;
const paths: WirePath[] = [];
const ids = new Map<string, number>();

beforeAll(async () => {
  wire = await WireSite.create('wiref');
  const { site } = wire;
  await wire.nft(`table inet spy { ${[...counting, library].join(' ')} }`);
  for (const family of ipFamilies) {
    const { outer } = addresses[family];
    const all = Object.values(numbers).map((number) => outer(number));
    await site.lab.routeToNode(
      [...all, ...[1, numbers.none, 99].map((number) => addresses[family].cluster(number))].map(parseIp),
      site.node,
    );
    const maps = wire.maps[family];
    maps.addNodeAddress(site.node.addresses[family]!);
    maps.addPodCidr(clusterCidrs[family]);
    maps.guard(serviceCidrs[family], addresses[family].cluster(1));
    for (const name of Object.keys(numbers) as Name[]) {
      for (const protocol of ['tcp', 'udp'] as const)
        ids.set(`${family} ${protocol} ${name}`, maps.add(serviceOf(name, family, protocol)));
    }
    const path = wire.open(family, { interfaces: ['*'] }); // pods' devices too: pods without a socket path
    paths.push(path);
    expect(await path.ensure(wireSignal)).toBeGreaterThan(0);
  }
});

const { signal: wireSignal } = new AbortController();

afterAll(async () => {
  for (const path of paths) await path[Symbol.asyncDispose]();
  await wire[Symbol.asyncDispose]();
});

function serviceOf(name: Name, family: IpFamily, protocol: 'tcp' | 'udp'): WireService {
  const { site } = wire;
  const near = [site.near.addresses[family]!, sitePort, 'near'] as const;
  const far = [site.far.addresses[family]!, sitePort, 'far'] as const;
  const host = [site.node.addresses[family]!, hostPort, 'near'] as const;
  const number = numbers[name];
  const forAll = (pod: ActionText, node: ActionText, outside: ActionText): WireService['actions'] => ({
    pod,
    node,
    outside,
  });
  const cluster = forAll('cluster', 'cluster+', 'cluster+');
  const local = forAll('cluster', 'cluster+', 'local');
  const client = site.lab.client.addresses[family]!;
  const bits = family === 'IPv4' ? 32 : 128;
  const more: Readonly<Record<Name, Partial<WireService>>> = {
    shop: { endpoints: [near, far] },
    local: { endpoints: [near, far], actions: local },
    away: { endpoints: [far], actions: forAll('cluster', 'cluster+', 'drop') },
    none: { actions: forAll('reject', 'reject', 'reject') },
    self: { endpoints: [near] },
    host: { endpoints: [host] },
    ranged: { endpoints: [near], ranges: [`${client}/${bits}`] },
    barred: { endpoints: [near], ranges: [family === 'IPv4' ? '192.0.2.0/24' : '2001:db8:ffff::/48'] },
    sticky: { endpoints: [near, far], affinity: 60 },
    closed: { endpoints: [[near[0], 9, 'near']], actions: local },
    shut: { endpoints: [[near[0], 9, 'near']] },
  };
  return {
    frontends: [
      [addresses[family].cluster(number), 80],
      [addresses[family].outer(number), 80],
      ['nodePort', 30000 + number],
    ],
    protocol,
    actions: cluster,
    endpoints: [],
    ...more[name],
  };
}

type Target = 'cluster' | 'outer' | 'nodePort' | 'unknownPort' | 'nobody';
function targetOf(family: IpFamily, to: Target, name: Name): readonly [address: string, port: number] {
  const { cluster } = addresses[family];
  switch (to) {
    case 'nodePort':
      return [wire.site.node.addresses[family]!, 30000 + numbers[name]];
    case 'unknownPort':
      return [cluster(numbers[name]), 81];
    case 'nobody':
      return [cluster(99), 80];
    default:
      return [addresses[family][to](numbers[name]), 80];
  }
}

/** `kept`: the endpoint sees the sender. `node`: it sees an address of the node. */
type Expected = { readonly by: readonly string[]; readonly source: 'kept' | 'node' } | 'refused' | 'timeout';

const both = ['far', 'near'];
const rows: readonly (readonly [
  sentence: string,
  from: 'client' | 'pod',
  to: Target,
  name: Name,
  expected: Expected,
])[] = [
  ['a client at a NodePort is masqueraded', 'client', 'nodePort', 'shop', { by: both, source: 'node' }],
  ['a client at a load-balancer IP is masqueraded', 'client', 'outer', 'shop', { by: both, source: 'node' }],
  ['a client at a cluster IP is masqueraded', 'client', 'cluster', 'shop', { by: both, source: 'node' }],
  ['a client at a Local load-balancer IP is kept', 'client', 'outer', 'local', { by: ['near'], source: 'kept' }],
  ['a client at a Local NodePort is kept', 'client', 'nodePort', 'local', { by: ['near'], source: 'kept' }],
  ['a Local load-balancer IP without an endpoint here drops', 'client', 'outer', 'away', 'timeout'],
  ['a load-balancer IP without endpoints refuses', 'client', 'outer', 'none', 'refused'],
  ['a cluster IP without endpoints refuses', 'client', 'cluster', 'none', 'refused'],
  ['a NodePort without endpoints refuses', 'client', 'nodePort', 'none', 'refused'],
  ['an endpoint on the node itself sees the client', 'client', 'outer', 'host', { by: ['host'], source: 'kept' }],
  ['a client in the source ranges is answered', 'client', 'outer', 'ranged', { by: ['near'], source: 'node' }],
  ['a client outside the source ranges is dropped', 'client', 'outer', 'barred', 'timeout'],
  ['a client with affinity stays where it was', 'client', 'outer', 'sticky', { by: ['one'], source: 'node' }],
  ['an endpoint that refuses is heard by a client that is kept', 'client', 'outer', 'closed', 'refused'],
  ['an endpoint that refuses is heard by a masqueraded client', 'client', 'outer', 'shut', 'refused'],
  ['an unknown port of a cluster IP is refused', 'client', 'unknownPort', 'shop', 'refused'],
  ['an address of the ServiceCIDR that no Service has is dropped', 'client', 'nobody', 'shop', 'timeout'],
  ['a pod at a cluster IP keeps its address', 'pod', 'cluster', 'host', { by: ['host'], source: 'kept' }],
  ['a pod keeps its address towards another node, too', 'pod', 'cluster', 'away', { by: ['far'], source: 'kept' }],
  ['a pod that reaches itself is masqueraded', 'pod', 'cluster', 'self', { by: ['near'], source: 'node' }],
];

describe.each(ipFamilies)('%s', (family) => {
  describe.each(['tcp', 'udp'] as const)('%s', (protocol) => {
    test.concurrent.each(rows)('%s', async (_, from, to, name, expected) => {
      const { site } = wire;
      const [address, port] = targetOf(family, to, name);
      const attempts = typeof expected === 'string' ? 1 : 12;
      const results = await Promise.all(
        Array.from({ length: attempts }, () => site[from].probe({ protocol, address, port })),
      );
      if (typeof expected === 'string') {
        expect(results).toMatchObject([{ status: expected }]);
        return;
      }
      const answers = results.filter((result) => result.status === 'answered') as readonly ProbeAnswer[];
      expect(answers).toHaveLength(attempts);
      const by = [...new Set(answers.map((answer) => answer.by))].sort();
      if (expected.by[0] === 'one') expect(by).toHaveLength(1);
      else expect(by).toEqual(expected.by);
      const own = { client: site.lab.client, pod: site.near }[from].addresses[family];
      const seen = new Set(answers.map(({ seenSource }) => seenSource));
      expect([...seen]).toEqual([expected.source === 'kept' ? own : site.node.addresses[family]]);
    });
  });

  const outer = (name: Name): string => addresses[family].outer(numbers[name]);
  const nodePort = (name: Name): number => 30000 + numbers[name];

  test('a port whose connection was broken off opens a new one, again and again', async () => {
    expect(await runClient(wire.site.lab.client, 'reopen', outer('local'), 80, 20)).toBe('20');
    expect(await runClient(wire.site.lab.client, 'reopen', outer('shop'), 80, 20)).toBe('20');
  });

  test('one port reaches the same endpoint by two frontends', async () => {
    const { client } = wire.site;
    const sourcePort = 34_567;
    for (const protocol of ['udp', 'tcp'] as const) {
      const first = await client.probe({ protocol, address: outer('local'), port: 80, sourcePort });
      const address = wire.node.addresses[family]!;
      const second = await client.probe({ protocol, address, port: nodePort('local'), sourcePort });
      expect(first).toMatchObject({ status: 'answered', by: 'near', seenSourcePort: sourcePort });
      expect(second).toMatchObject({ status: 'answered', by: 'near' });
      expect(second).not.toMatchObject({ seenSourcePort: sourcePort }); // otherwise the answers would be ambiguous
    }
  });

  test('a connection that conntrack forgot is reset, rather than led nowhere', async () => {
    const { client } = wire.site;
    const { connection } = await client.open({ protocol: 'tcp', address: outer('local'), port: 80 });
    expect(await connection?.exchange('before')).toEqual({ status: 'echoed' });
    flushConntrack(netnsOf(wire.node));
    expect(await connection?.exchange('after')).toEqual({ status: 'reset' });
  });

  test.each(['local', 'shop'] as const)('fragments of a datagram arrive together (%s)', async (name) => {
    expect(await runClient(wire.site.lab.client, 'datagram', outer(name), 80, 8000)).toBe('true');
  });

  test.each(['local', 'ranged'] as const)('the client learns of a small MTU behind the node (%s)', async (name) => {
    const { lab, near } = wire.site;
    const device = await deviceTo(near.addresses[family]!);
    await wire.ip('link', 'set', device, 'mtu', '1300');
    // A veth drops larger packets of the pod without an ICMP error. So the pod sends small ones, and still offers the usual size. A
    // masquerading node has a route of its own.
    const [flag, size] = family === 'IPv4' ? ['-4', '1460'] : ['-6', '1440'];
    const { stdout } = await near.run('ip', [flag, 'route', 'show']);
    const routes = stdout.split('\n').filter((line) => /^default|scope link/.test(line));
    const replace = async (...metrics: readonly string[]): Promise<void> => {
      for (const route of routes)
        await near.run('ip', [flag, 'route', 'replace', ...route.trim().split(/\s+/), ...metrics]);
    };
    await replace('mtu', '1300', 'advmss', size);
    try {
      const answered = await runClient(lab.client, 'bulk', outer(name), 80, 200_000);
      expect(Number(answered)).toBeGreaterThanOrEqual(200_000);
      const route = await lab.client.run('ip', ['route', 'get', outer(name)]);
      expect(route.stdout).toContain('mtu 1300');
    } finally {
      await replace();
      await wire.ip('link', 'set', device, 'mtu', '1500');
    }
  });
});

test('first packets are counted, by what became of them, and nothing else', async () => {
  const { client } = wire.site;
  const outer = (name: Name): string => addresses.IPv4.outer(numbers[name]);
  const before = new Map(counted.map((name) => [name, countersOf(name)]));
  const { connection } = await client.open({ protocol: 'tcp', address: outer('local'), port: 80 });
  for (let round = 0; round < 5; round++) await connection?.exchange('again');
  await connection?.close();
  await client.probe({ protocol: 'tcp', address: outer('none'), port: 80 });
  for (const name of ['away', 'barred'] as const) {
    await client.probe({ protocol: 'tcp', address: outer(name), port: 80, timeout: 300 }); // one SYN
  }
  const grown = (name: Name): readonly number[] => countersOf(name).map((value, at) => value - before.get(name)![at]!);
  expect(Object.fromEntries(counted.map((name) => [name, grown(name)]))).toEqual({
    local: [1, 0, 0, 0],
    away: [0, 1, 0, 0],
    none: [0, 0, 1, 0],
    barred: [0, 0, 0, 1],
  });
});

test('no mark leaves the guard table, and no other rule uses conntrack', async () => {
  const rules = await wire.nft('list', 'table', 'inet', 'spy');
  expect([...rules.matchAll(/counter packets (\d+)/g)].map(([, count]) => Number(count))).toEqual([0, 0, 0]);
  expect((await wire.nft('list', 'tables')).trim().split('\n')).toHaveLength(2);
});

const counted: readonly Name[] = ['local', 'away', 'none', 'barred'];

function countersOf(name: Name): readonly number[] {
  return wire.maps.IPv4.counters(ids.get(`IPv4 tcp ${name}`)!);
}

/** A rule as our nftables library has for unused addresses of the ServiceCIDR: it must come too late. */
const library = `chain library { type nat hook prerouting priority -100;
  ip daddr ${serviceCidrs.IPv4} drop; ip6 daddr ${serviceCidrs.IPv6} drop; };`;

/** Counts what is marked where packets go to be routed, are received and leave. */
const counting = ['prerouting priority 0', 'input priority -300', 'postrouting priority -300'].map(
  (hook, index) => `chain c${index} { type filter hook ${hook}; meta mark & 0x3000 != 0 counter; };`,
);

async function deviceTo(address: string): Promise<string> {
  const [, device = ''] = /dev (\S+)/.exec(await wire.ip('route', 'get', address)) ?? [];
  return device;
}
