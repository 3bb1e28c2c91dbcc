import { type IpFamily, ipFamilies, parseIp } from '@switchyard/core';
import { clusterCidrs, type ProbeAnswer, serviceCidrs, sitePort } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WirePath } from '../../src/wire/wire-path.ts';
import { hostPort, WireSite } from './wire-site.ts';
import type { ActionText, WireService } from './wire-maps.ts';

/** The last digit tells the Service. */
const addresses: Readonly<
  Record<IpFamily, { readonly cluster: (n: number) => string; readonly outer: (n: number) => string }>
> = {
  IPv4: { cluster: (n) => `10.96.0.${n}`, outer: (n) => `198.51.100.${n}` },
  IPv6: { cluster: (n) => `fd00:10:96::${n}`, outer: (n) => `2001:db8:51::${n}` },
};

const numbers = { shop: 1, local: 2, away: 3, none: 4, self: 5, host: 6, ranged: 7, barred: 8, sticky: 9 } as const;
type Name = keyof typeof numbers;

let wire: WireSite;
const paths: WirePath[] = [];
const ids = new Map<string, number>();

beforeAll(async () => {
  wire = await WireSite.create('wiref');
  const { site } = wire;
  for (const family of ipFamilies) {
    const { outer } = addresses[family];
    const all = Object.values(numbers).map((number) => outer(number));
    await site.lab.routeToNode(
      [...all, addresses[family].cluster(1), addresses[family].cluster(99)].map(parseIp),
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

type Target = 'cluster' | 'outer' | 'nodePort';
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
  ['a NodePort without endpoints refuses', 'client', 'nodePort', 'none', 'refused'],
  ['an endpoint on the node itself sees the client', 'client', 'outer', 'host', { by: ['host'], source: 'kept' }],
  ['a client in the source ranges is answered', 'client', 'outer', 'ranged', { by: ['near'], source: 'node' }],
  ['a client outside the source ranges is dropped', 'client', 'outer', 'barred', 'timeout'],
  ['a client with affinity stays where it was', 'client', 'outer', 'sticky', { by: ['one'], source: 'node' }],
  ['a pod at a cluster IP keeps its address', 'pod', 'cluster', 'host', { by: ['host'], source: 'kept' }],
  ['a pod that reaches itself is masqueraded', 'pod', 'cluster', 'self', { by: ['near'], source: 'node' }],
];

describe.each(ipFamilies)('%s', (family) => {
  describe.each(['tcp', 'udp'] as const)('%s', (protocol) => {
    test.concurrent.each(rows)('%s', async (_, from, to, name, expected) => {
      const { site } = wire;
      const target =
        to === 'nodePort'
          ? { address: site.node.addresses[family]!, port: 30000 + numbers[name] }
          : { address: addresses[family][to](numbers[name]), port: 80 };
      const attempts = typeof expected === 'string' ? 1 : 12;
      const results = await Promise.all(
        Array.from({ length: attempts }, () => site[from].probe({ protocol, ...target })),
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
});
