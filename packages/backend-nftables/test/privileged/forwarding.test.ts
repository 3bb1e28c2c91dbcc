import { type IpFamily, ipFamilies, parseIp } from '@switchyard/core';
import { situation, type SituationSpec } from '@switchyard/core/testing';
import { clusterCidrs, serviceCidrs } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSite, Kernel, type Site } from './support.ts';

/** One address per kind of frontend and policy; the last digit is the Service. */
const addresses: Readonly<
  Record<IpFamily, { readonly cluster: (n: number) => string; readonly outer: (n: number) => string }>
> = {
  IPv4: { cluster: (n) => `10.96.0.${n}`, outer: (n) => `198.51.100.${n}` },
  IPv6: { cluster: (n) => `fd00:10:96::${n}`, outer: (n) => `2001:db8:51::${n}` },
};

const numbers = { shop: 1, local: 2, away: 3, none: 4, self: 5, inner: 6, innerAway: 7 } as const;
type Name = keyof typeof numbers;

let site: Site;

beforeAll(async () => {
  site = await createSite('nftk');
  for (const family of ipFamilies) {
    const { cluster, outer } = addresses[family];
    const all = [...Object.values(numbers), 99].flatMap((number) => [cluster(number), outer(number)]);
    await site.lab.routeToNode(all.map(parseIp), site.node);
    const kernel = await Kernel.open(site.node, family);
    const table = situation(services(family), {
      ipFamily: family,
      podCidr: clusterCidrs[family],
      serviceCidrs: [serviceCidrs[family]],
    });
    expect(await kernel.full(table)).toMatchObject({ status: 'applied' });
  }
});

afterAll(() => site[Symbol.asyncDispose]());

function services(family: IpFamily): Readonly<Record<Name, SituationSpec>> {
  const near = { ip: site.near.addresses[family]!, node: 'n1' };
  const far = { ip: site.far.addresses[family]!, node: 'n2' };
  const spec = (name: Name, more: SituationSpec): SituationSpec => ({
    clusterIps: [addresses[family].cluster(numbers[name])],
    loadBalancerIps: [addresses[family].outer(numbers[name])],
    ports: [
      { name: 'tcp', port: 80, nodePort: 30000 + numbers[name] },
      { name: 'udp', protocol: 'UDP', port: 80, nodePort: 30000 + numbers[name] },
    ],
    ...more,
  });
  return {
    shop: spec('shop', { endpoints: [near, far] }),
    local: spec('local', { external: 'Local', endpoints: [near, far] }),
    away: spec('away', { external: 'Local', endpoints: [far] }),
    none: spec('none', {}),
    self: spec('self', { external: 'Local', endpoints: [near] }),
    inner: spec('inner', { internal: 'Local', endpoints: [near, far] }),
    innerAway: spec('innerAway', { internal: 'Local', endpoints: [far] }),
  };
}

type Sender = 'client' | 'pod' | 'self';
type Target = 'cluster' | 'outer' | 'nodePort';

/** `kept`: the endpoint sees the sender. `node`: it sees an address of the node. */
type Expected = { readonly by: readonly string[]; readonly source: 'kept' | 'node' } | 'refused' | 'timeout';

const both = ['far', 'near'];
const rows: readonly (readonly [sentence: string, from: Sender, to: Target, name: Name, expected: Expected])[] = [
  ['a client at a cluster IP is masqueraded', 'client', 'cluster', 'shop', { by: both, source: 'node' }],
  ['a pod at a cluster IP keeps its address', 'pod', 'cluster', 'shop', { by: both, source: 'kept' }],
  ['the node at a cluster IP comes as itself', 'self', 'cluster', 'shop', { by: both, source: 'node' }],
  ['a client at a load-balancer IP is masqueraded', 'client', 'outer', 'shop', { by: both, source: 'node' }],
  ['a client at a NodePort is masqueraded', 'client', 'nodePort', 'shop', { by: both, source: 'node' }],
  ['a pod at a NodePort is masqueraded', 'pod', 'nodePort', 'shop', { by: both, source: 'node' }],
  ['the node at its own NodePort is answered', 'self', 'nodePort', 'shop', { by: both, source: 'node' }],
  [
    'a client at a Local load-balancer IP is kept, on this node',
    'client',
    'outer',
    'local',
    { by: ['near'], source: 'kept' },
  ],
  [
    'a client at a Local NodePort is kept, on this node',
    'client',
    'nodePort',
    'local',
    { by: ['near'], source: 'kept' },
  ],
  ['a pod at a Local load-balancer IP goes everywhere, kept', 'pod', 'outer', 'local', { by: both, source: 'kept' }],
  ['the node at a Local load-balancer IP goes everywhere', 'self', 'outer', 'local', { by: both, source: 'node' }],
  ['a client at a Local IP without an endpoint here is dropped', 'client', 'outer', 'away', 'timeout'],
  ['a client at a Local NodePort without an endpoint here is dropped', 'client', 'nodePort', 'away', 'timeout'],
  ['a pod at the same IP is answered from there', 'pod', 'outer', 'away', { by: ['far'], source: 'kept' }],
  ['the node at the same NodePort is answered from there', 'self', 'nodePort', 'away', { by: ['far'], source: 'node' }],
  ['its cluster IP is not concerned', 'client', 'cluster', 'away', { by: ['far'], source: 'node' }],
  ['a client at a cluster IP without endpoints is refused', 'client', 'cluster', 'none', 'refused'],
  ['a client at a load-balancer IP without endpoints is refused', 'client', 'outer', 'none', 'refused'],
  ['a client at a NodePort without endpoints is refused', 'client', 'nodePort', 'none', 'refused'],
  ['a pod at a cluster IP without endpoints is refused', 'pod', 'cluster', 'none', 'refused'],
  ['the node at a cluster IP without endpoints is refused', 'self', 'cluster', 'none', 'refused'],
  [
    'a pod that reaches itself by cluster IP is masqueraded',
    'pod',
    'cluster',
    'self',
    { by: ['near'], source: 'node' },
  ],
  [
    'a pod that reaches itself by load-balancer IP is masqueraded',
    'pod',
    'outer',
    'self',
    { by: ['near'], source: 'node' },
  ],
  ['internal Local stays on this node', 'pod', 'cluster', 'inner', { by: ['near'], source: 'node' }],
  ['internal Local says nothing about external traffic', 'client', 'outer', 'inner', { by: both, source: 'node' }],
  ['internal Local without an endpoint here drops', 'pod', 'cluster', 'innerAway', 'timeout'],
];

describe.each(ipFamilies)('%s', (family) => {
  const addressOf = (target: Target, name: Name): readonly [string, number] => {
    const number = numbers[name];
    if (target === 'nodePort') return [site.node.addresses[family]!, 30000 + number];
    return [addresses[family][target](number), 80];
  };

  describe.each(['tcp', 'udp'] as const)('%s', (protocol) => {
    test.each(rows)('%s', async (_, from, to, name, expected) => {
      const [address, port] = addressOf(to, name);
      const attempts = Array.from({ length: typeof expected === 'string' ? 1 : 16 }, () =>
        site[from].probe({ protocol, address, port }),
      );
      const results = await Promise.all(attempts);
      if (typeof expected === 'string') {
        expect(results).toMatchObject([{ status: expected }]);
        return;
      }
      const answers = results.flatMap((result) => (result.status === 'answered' ? [result] : []));
      expect(answers).toHaveLength(16);
      expect([...new Set(answers.map(({ by }) => by))].sort()).toEqual(expected.by);
      const own = { client: site.lab.client, pod: site.near, self: site.node }[from].addresses[family];
      const kept = answers.filter(({ seenSource }) => seenSource === own);
      // The node's own packets have its address either way; a pod's to itself are the hairpin rows.
      if (from !== 'self')
        expect(kept).toHaveLength(expected.source === 'kept' ? keptCount(expected.by, answers, from) : 0);
    });
  });

  /** The pod `near` may pick itself: that connection, and only that, is masqueraded. */
  function keptCount(
    by: readonly string[],
    answers: readonly { readonly by: string | undefined }[],
    from: Sender,
  ): number {
    return from === 'pod' && by.includes('near')
      ? answers.filter((answer) => answer.by !== 'near').length
      : answers.length;
  }

  test.each([
    ['an unknown port of a cluster IP is refused', () => addresses[family].cluster(1), 'refused'],
    ['an address of the ServiceCIDR that no Service has is dropped', () => addresses[family].cluster(99), 'timeout'],
  ] as const)('%s', async (_, address, status) => {
    expect(await site.client.probe({ protocol: 'tcp', address: address(), port: 81 })).toMatchObject({ status });
  });

  test('a NodePort does not answer on loopback', async () => {
    const address = family === 'IPv4' ? '127.0.0.1' : '::1';
    expect(await site.self.probe({ protocol: 'tcp', address, port: 30001 })).toMatchObject({ status: 'refused' });
  });

  test('a NodePort answers on an address that the node got later, without any write', async () => {
    const { outer } = addresses[family];
    await site.node.run('ip', ['addr', 'add', `${outer(99)}/${family === 'IPv4' ? 32 : 128}`, 'dev', 'lo']);
    expect(await site.client.probe({ protocol: 'tcp', address: outer(99), port: 30001 })).toMatchObject({
      status: 'answered',
    });
    await site.node.run('ip', ['addr', 'del', `${outer(99)}/${family === 'IPv4' ? 32 : 128}`, 'dev', 'lo']);
    expect(await site.client.probe({ protocol: 'tcp', address: outer(99), port: 30001 })).not.toMatchObject({
      status: 'answered',
    });
  });
});
