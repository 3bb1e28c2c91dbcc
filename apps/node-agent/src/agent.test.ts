import { HostError, parseCidr, type IpFamily, type ServicePortKey } from '@switchyard/core';
import { replaceAll, node, service, settle, slice } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { AgentBench, configOf } from './testing/agent-bench.ts';

const exposed = service('shop/cart', {
  clusterIps: ['10.96.0.10', 'fd00:10:96::10'],
  external: 'Local',
  loadBalancerIps: ['198.51.100.7'],
  healthCheckNodePort: 30001,
  ports: [{ nodePort: 30080 }],
});
const here = node('n1', { addresses: ['192.0.2.1', 'fd00::1', '203.0.113.1'] });
const cluster = replaceAll({
  services: [exposed],
  slices: [slice('shop/cart', { endpoints: [{ ip: '10.244.1.1', node: 'n1' }] })],
  nodes: [here],
});

describe('tables', () => {
  test.each<readonly [string, readonly string[], IpFamily, object]>([
    ['primary is the first address of a family', [], 'IPv4', { nodePortCidrs: ['192.0.2.1/32'] }],
    ['primary of the other family', [], 'IPv6', { nodePortCidrs: ['fd00::1/128'] }],
    ['CIDRs select', ['--nodeport-addresses=10.0.0.0/8'], 'IPv4', { nodePortCidrs: ['10.0.0.0/8'] }],
    [
      'CIDRs of one family leave the other open',
      ['--nodeport-addresses=10.0.0.0/8'],
      'IPv6',
      { nodePortCidrs: ['::/0'] },
    ],
    [
      'pods are recognized by their range',
      ['--cluster-cidr=10.244.0.0/16'],
      'IPv4',
      { podDetector: { kind: 'cidr', cidr: '10.244.0.0/16' } },
    ],
    [
      'no pods are recognized in a family without a range',
      ['--cluster-cidr=10.244.0.0/16'],
      'IPv6',
      { podDetector: { kind: 'none' } },
    ],
  ])('%s', async (_, args, family, expected) => {
    await using bench = new AgentBench(configOf(...args));
    await bench.push(cluster);
    expect(bench.backends[family].table).toMatchObject(expected);
  });

  test('fact 28: follow the Node when it gets another address', async () => {
    await using bench = new AgentBench(configOf());
    await bench.push(cluster);
    await bench.push([{ kind: 'upsert', resource: 'Node', item: node('n1', { addresses: ['192.0.2.2'] }) }]);
    expect(bench.backends.IPv4.table?.nodePortCidrs).toEqual(['192.0.2.2/32']);
    expect(bench.backends.IPv6.table?.nodePortCidrs).toEqual([]);
  });

  test('fact 49: follow a ServiceCIDR that is added', async () => {
    await using bench = new AgentBench(configOf());
    await bench.push(cluster);
    const added = { name: 'more', cidrs: ['10.97.0.0/16', 'fd00:10:97::/112'].map(parseCidr) };
    await bench.push([{ kind: 'upsert', resource: 'ServiceCIDR', item: added }]);
    expect(bench.backends.IPv4.table?.serviceCidrs).toEqual(['10.97.0.0/16']);
    expect(bench.backends.IPv6.table?.serviceCidrs).toEqual(['fd00:10:97::/112']);
  });

  test('fact 22: source ranges follow the Node when it gets another address', async () => {
    await using bench = new AgentBench(configOf());
    const restricted = service('shop/cart', {
      loadBalancerIps: ['198.51.100.7'],
      sourceRanges: ['192.0.2.2/32'],
    });
    await bench.push(replaceAll({ services: [restricted], nodes: [here] }));
    const sources = (): unknown =>
      bench.backends.IPv4.table?.services
        .get('shop/cart:/TCP' as ServicePortKey)
        ?.frontends.find(({ kind }) => kind === 'loadBalancerIP')?.allowedSources;
    expect(sources()).toEqual(['192.0.2.2/32']);
    await bench.push([{ kind: 'upsert', resource: 'Node', item: node('n1', { addresses: ['192.0.2.2'] }) }]);
    expect(sources()).toEqual(['192.0.2.2/32', '198.51.100.7/32']);
  });

  test.each([
    ['on', ['10.244.1.1']],
    ['off', []],
  ])('--switchyard-terminating-fallback=%s reaches the policy', async (fallback, expected) => {
    await using bench = new AgentBench(configOf(`--switchyard-terminating-fallback=${fallback}`));
    await bench.push(cluster);
    const terminating = slice('shop/cart', { endpoints: [{ ip: '10.244.1.1', node: 'n1', terminating: true }] });
    await bench.push([{ kind: 'upsert', resource: 'EndpointSlice', item: terminating }]);
    const [forwarding] = bench.backends.IPv4.kernel.values();
    expect(forwarding?.endpoints.Local.map((one) => one.address)).toEqual(expected);
  });
});

describe('NodePorts on loopback', () => {
  const both = ['127.0.0.1:30080', '[::1]:30080'];
  const dual = [
    slice('shop/cart', { endpoints: [{ ip: '10.244.1.1', node: 'n1' }] }),
    slice('shop/cart', { name: 'cart-6', endpoints: [{ ip: 'fd00:10:244::1', node: 'n1' }] }),
  ];
  const served = replaceAll({ services: [exposed], slices: dual, nodes: [here] });

  test.each([
    ['localhost', both],
    ['primary,127.0.0.1/32', ['127.0.0.1:30080']],
    ['all', []],
    ['primary', []],
  ])('nodePortAddresses %s', async (addresses, expected) => {
    await using bench = new AgentBench(configOf(`--nodeport-addresses=${addresses}`));
    await bench.push(served);
    expect(bench.network.places).toEqual(expected);
  });

  test('wait for the first apply, follow the configuration, and end with the agent', async () => {
    await using bench = new AgentBench(configOf('--nodeport-addresses=localhost'));
    bench.backends.IPv4.refuse('shop/cart:/TCP' as ServicePortKey, new HostError('nft', 'refused'));
    await bench.push(served);
    expect(bench.network.places).toEqual(['[::1]:30080']);
    bench.backends.IPv4.refuse('shop/cart:/TCP' as ServicePortKey, undefined);
    await bench.clock.advance(2000);
    expect(bench.network.places).toEqual(both);
    await bench.reconfigure(configOf('--nodeport-addresses=primary'));
    expect(bench.network.places).toEqual([]);
    await bench.reconfigure(configOf('--nodeport-addresses=localhost'));
    expect(bench.network.places).toEqual(both);
    await bench[Symbol.asyncDispose]();
    expect(bench.network.places).toEqual([]);
  });
});

describe('our Node', () => {
  const withoutNode = replaceAll({ services: [exposed] });

  const unknown = 'load balancers must not use this node: /healthz answers 503';

  test('is waited for when its addresses matter', async () => {
    await using bench = new AgentBench(configOf());
    await bench.push(withoutNode);
    await bench.clock.advance(29_000);
    expect(bench.backends.IPv4.applies).toHaveLength(0);
    await bench.push([{ kind: 'upsert', resource: 'Node', item: here }]);
    expect(bench.backends.IPv4.table?.nodePortCidrs).toEqual(['192.0.2.1/32']);
    expect(bench.warnings).toEqual([unknown]);
  });

  test('is waited for 30 s, then done without, with a warning', async () => {
    await using bench = new AgentBench(configOf());
    await bench.push(withoutNode);
    await bench.clock.advance(30_000);
    expect(bench.backends.IPv4.table?.nodePortCidrs).toEqual([]);
    expect(bench.warnings).toEqual([unknown, 'continuing without an unmet condition']);
  });

  test('in NodeCIDR mode its pod ranges are waited for, used, and followed when they change', async () => {
    await using bench = new AgentBench({
      ...configOf('--nodeport-addresses=0.0.0.0/0'),
      detectLocal: { kind: 'nodeCIDR' },
    });
    await bench.push(withoutNode);
    await bench.clock.advance(299_999);
    expect(bench.backends.IPv4.applies).toHaveLength(0);
    const put = async (podCidrs: readonly string[]): Promise<unknown> => {
      await bench.push([{ kind: 'upsert', resource: 'Node', item: node('n1', { podCidrs }) }]);
      return bench.backends.IPv4.table?.podDetector;
    };
    expect(await put(['10.244.1.0/24', 'fd00:10:244:1::/64'])).toEqual({ kind: 'cidr', cidr: '10.244.1.0/24' });
    expect(bench.backends.IPv6.table?.podDetector).toEqual({ kind: 'cidr', cidr: 'fd00:10:244:1::/64' });
    expect(await put(['10.244.9.0/24'])).toEqual({ kind: 'cidr', cidr: '10.244.9.0/24' });
    expect(await put([])).toEqual({ kind: 'cidr', cidr: '10.244.9.0/24' });
  });

  test('in NodeCIDR mode the agent ends when there are no pod ranges in five minutes, and writes nothing', async () => {
    await using bench = new AgentBench({ ...configOf(), detectLocal: { kind: 'nodeCIDR' } });
    await bench.push(withoutNode);
    await bench.clock.advance(300_000);
    await expect(bench.ended).rejects.toThrow('Node n1 has no spec.podCIDRs after 300 s');
    expect(bench.backends.IPv4.applies).toHaveLength(0);
  });

  test('fact 48: its zone decides on topology anew when it changes, its other labels do not', async () => {
    await using bench = new AgentBench(configOf());
    const hinted = slice('shop/cart', {
      endpoints: [
        { ip: '10.244.1.1', node: 'n1', zoneHints: ['a'] },
        { ip: '10.244.2.1', node: 'n2', zoneHints: ['b'] },
      ],
    });
    const put = async (zone: string): Promise<unknown> => {
      await bench.push([{ kind: 'upsert', resource: 'Node', item: { ...here, zone } }]);
      const [forwarding] = bench.backends.IPv4.kernel.values();
      return forwarding?.endpoints.Cluster.map((one) => one.address);
    };
    await bench.push(replaceAll({ services: [service('shop/cart')], slices: [hinted], nodes: [here] }));
    expect(await put('a')).toEqual(['10.244.1.1']);
    expect(await put('b')).toEqual(['10.244.2.1']);
    const { length } = bench.backends.IPv4.applies;
    await put('b');
    expect(bench.backends.IPv4.applies).toHaveLength(length);
  });

  test.each([
    ['when NodePort addresses are given', ['--nodeport-addresses=0.0.0.0/0']],
    ['when there are only manifests', ['--kubeconfig=', '--switchyard-manifests=/unused']],
  ])('is not waited for %s', async (_, args) => {
    await using bench = new AgentBench(configOf(...args));
    await bench.push(withoutNode);
    await bench.clock.advance(0);
    expect(bench.backends.IPv4.applies).toHaveLength(1);
  });
});

describe('healthz and livez', () => {
  test('are answered from the start: livez at once, healthz after the first apply', async () => {
    await using bench = new AgentBench(configOf());
    await settle();
    expect([bench.status('/healthz'), bench.status('/livez'), bench.status('/')]).toEqual([503, 200, 404]);
    await bench.push(cluster);
    expect([bench.status('/healthz?verbose'), bench.status('/livez')]).toEqual([200, 200]);
  });

  test('healthz says no for a node on its way out', async () => {
    await using bench = new AgentBench(configOf());
    await bench.push(cluster);
    await bench.push([{ kind: 'upsert', resource: 'Node', item: { ...here, isEligible: false } }]);
    expect([bench.status('/healthz'), bench.status('/livez')]).toEqual([503, 200]);
  });

  test('fact 40: healthz says no for an unknown node', async () => {
    await using bench = new AgentBench(configOf('--hostname-override=other', '--nodeport-addresses=0.0.0.0/0'));
    await bench.push(cluster);
    expect([bench.status('/healthz'), bench.status('/livez')]).toEqual([503, 200]);
  });

  test('both say no when a change waits for twice the sync period', async () => {
    const release = Promise.withResolvers<void>();
    await using bench = new AgentBench(configOf('--iptables-sync-period=5s'), { during: () => release.promise });
    await bench.push(cluster);
    await bench.clock.advance(9999);
    expect(bench.status('/livez')).toBe(200);
    await bench.clock.advance(1);
    expect([bench.status('/healthz'), bench.status('/livez')]).toEqual([503, 503]);
    release.resolve();
    await settle();
    expect([bench.status('/healthz'), bench.status('/livez')]).toEqual([200, 200]);
  });

  test('fact 41: an empty address means no server, and health checks still answer', async () => {
    await using bench = new AgentBench(configOf('--healthz-bind-address='));
    await bench.push(cluster);
    expect(bench.listener.places).toEqual(['192.0.2.1:30001', '[fd00::1]:30001']);
    expect(bench.listener.get('192.0.2.1:30001')?.status).toBe(200);
  });
});

describe('healthCheckNodePort', () => {
  test('fact 33: listens per family on the NodePort addresses that are on an interface, with counts of its own', async () => {
    await using bench = new AgentBench(configOf());
    await bench.push(cluster);
    expect(bench.listener.places).toEqual(['192.0.2.1:30001', '[fd00::1]:30001', 'any-both:10256']);
    expect(bench.listener.get('192.0.2.1:30001')?.status).toBe(200);
    expect(bench.listener.get('[fd00::1]:30001')?.status).toBe(503);
  });

  test.each(['nftables', 'iptables', 'ebpf'])(
    'listens on loopback addresses that are selected, in mode %s',
    async (mode) => {
      await using bench = new AgentBench(configOf(`--proxy-mode=${mode}`, '--nodeport-addresses=127.0.0.0/8,::1/128'));
      await bench.push(cluster);
      expect(bench.listener.places).toEqual(['127.0.0.1:30001', '[::1]:30001', 'any-both:10256']);
      expect(bench.listener.get('127.0.0.1:30001')?.status).toBe(200);
    },
  );

  test('listens on any address when NodePorts answer everywhere', async () => {
    await using bench = new AgentBench(configOf('--nodeport-addresses=0.0.0.0/0,::/0'));
    await bench.push(cluster);
    expect(bench.listener.places).toEqual(['any-IPv4:30001', 'any-IPv6:30001', 'any-both:10256']);
  });

  test('follows the addresses of the interfaces at once, without a change of the cluster', async () => {
    await using bench = new AgentBench(configOf('--nodeport-addresses=192.0.2.0/24'));
    await bench.push(cluster);
    bench.interfaceAddresses = ['192.0.2.2', '10.0.0.1'];
    bench.addressEvents.push('changed');
    await bench.clock.advance(250);
    expect(bench.listener.places).toEqual(['192.0.2.2:30001', 'any-IPv6:30001', 'any-both:10256']);
  });

  test('follows them late, with one warning, if the machine cannot detect changes', async () => {
    await using bench = new AgentBench(configOf('--nodeport-addresses=192.0.2.0/24,fd00::/8'));
    await bench.push(cluster);
    const failure = new HostError('native.missing', 'no addon');
    bench.addressEvents.push(failure, failure);
    await bench.clock.advance(31_000);
    bench.interfaceAddresses = ['192.0.2.2'];
    await bench.clock.advance(30_000);
    expect(bench.listener.places).toContain('192.0.2.2:30001');
    expect(bench.warnings).toEqual(['address changes are detected late']);
  });

  test('fact 35: does not follow node eligibility', async () => {
    await using bench = new AgentBench(configOf());
    await bench.push(cluster);
    await bench.push([{ kind: 'upsert', resource: 'Node', item: { ...here, isEligible: false } }]);
    expect(bench.listener.get('192.0.2.1:30001')?.status).toBe(200);
  });
});

test('reports forwarding once, after the first apply of the last family', async () => {
  const held = Promise.withResolvers<void>();
  await using bench = new AgentBench(configOf(), { during: () => held.promise });
  await bench.push(cluster);
  expect(bench.backends.IPv6.table?.services.size).toBe(1);
  expect(bench.forwarding).toBe(0);
  held.resolve();
  await settle();
  expect(bench.forwarding).toBe(1);
  await bench.push(replaceAll({ services: [], slices: [], nodes: [here] }));
  expect(bench.forwarding).toBe(1);
});

describe('bindAddressHardFail', () => {
  test('ends the agent when the health server cannot listen, with servers closed and the kernel left alone', async () => {
    await using bench = new AgentBench({ ...configOf(), bindAddressHardFail: true }, { taken: ['any-both:10256'] });
    await expect(bench.ended).rejects.toMatchObject({ code: 'host.hardFail' });
    await bench.push(cluster);
    expect(bench.listener.places).toEqual([]);
    expect(bench.backends.IPv4.applies).toHaveLength(0);
  });

  test('without it the agent goes on', async () => {
    await using bench = new AgentBench(configOf(), { taken: ['any-both:10256'] });
    await bench.push(cluster);
    expect(bench.backends.IPv4.applies).toHaveLength(1);
    expect(bench.warnings).toEqual(['healthz cannot listen, will retry']);
  });
});

describe('the end', () => {
  test('closes every server and leaves the kernel alone', async () => {
    const bench = new AgentBench(configOf());
    await bench.push(cluster);
    await bench[Symbol.asyncDispose]();
    await expect(bench.ended).resolves.toBeUndefined();
    expect(bench.listener.places).toEqual([]);
    expect(bench.backends.IPv4.kernel.size).toBe(1);
    expect(bench.clock.sleeping).toBe(0);
  });

  test('a source that can never recover ends the agent with its error, servers closed', async () => {
    await using bench = new AgentBench(configOf());
    await bench.push(cluster);
    const error = new Error('gone');
    bench.source.fail(error);
    await expect(bench.ended).rejects.toBe(error);
    expect(bench.listener.places).toEqual([]);
  });
});
