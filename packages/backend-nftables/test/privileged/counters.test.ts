import { type ForwardingTable, type IpFamily, ipFamilies, parseIp, type ServicePortKey } from '@switchyard/core';
import { type ServiceCounters } from '@switchyard/core/engine';
import { here, situation, type SituationSpec, there } from '@switchyard/core/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createSite, Kernel, signal, type Site } from './support.ts';

const vips: Readonly<Record<IpFamily, string>> = { IPv4: '198.51.100.1', IPv6: '2001:db8:51::1' };
const clusterIps: Readonly<Record<IpFamily, string>> = { IPv4: '10.96.0.10', IPv6: 'fd00:10:96::10' };
const none: ServiceCounters = { connections: 0, drops: { noLocalEndpoint: 0, noEndpoints: 0, sourceRange: 0 } };

let site: Site;

beforeAll(async () => {
  site = await createSite('nftc');
  const addresses = ipFamilies.flatMap((family) => [vips[family], clusterIps[family]]);
  await site.lab.routeToNode(addresses.map(parseIp), site.node);
});

afterAll(() => site[Symbol.asyncDispose]());

describe.each(ipFamilies)('%s', (family) => {
  let kernel: Kernel;

  beforeEach(async () => {
    kernel = await Kernel.open(site.node, family);
    await kernel.full(situation({}, { ipFamily: family }));
  });

  /** A Service of two ports, `tcp` and `udp`, on 80, with NodePorts. */
  function shop(spec: SituationSpec): ForwardingTable {
    const ports = (['TCP', 'UDP'] as const).map((protocol) => ({
      name: protocol.toLowerCase(),
      protocol,
      port: 80,
      nodePort: 30080,
    }));
    const base = { clusterIps: [clusterIps[family]], loadBalancerIps: [vips[family]], ports };
    return situation({ shop: { ...base, ...spec } }, { ipFamily: family });
  }

  const near = (): ReturnType<typeof here> => here(site.near.addresses[family]!);
  const far = (): ReturnType<typeof there> => there(site.far.addresses[family]!);

  async function connect(
    count: number,
    protocol: 'tcp' | 'udp',
    place: 'vip' | 'clusterIp' | 'nodePort',
  ): Promise<void> {
    const address = { vip: vips[family], clusterIp: clusterIps[family], nodePort: site.node.addresses[family]! }[place];
    const port = place === 'nodePort' ? 30080 : 80;
    const attempts = Array.from({ length: count }, () => site.client.probe({ protocol, address, port, timeout: 300 }));
    await Promise.all(attempts);
  }

  const countersOf = async (protocol: 'tcp' | 'udp', from: Kernel = kernel): Promise<ServiceCounters | undefined> =>
    (await from.backend.observers.counters?.(signal))?.get(
      `shop/shop:${protocol}/${protocol.toUpperCase()}` as ServicePortKey,
    );

  test.each(['tcp', 'udp'] as const)('%s connections are counted, per service port', async (protocol) => {
    await kernel.full(shop({ endpoints: [near(), far()] }));
    expect(await countersOf(protocol)).toEqual(none);
    await connect(3, protocol, 'vip');
    await connect(2, protocol, 'clusterIp');
    await connect(4, protocol, 'nodePort');
    expect(await countersOf(protocol)).toEqual({ ...none, connections: 9 });
    expect(await countersOf(protocol === 'tcp' ? 'udp' : 'tcp')).toEqual(none);
    const restarted = await Kernel.open(site.node, family);
    expect(await restarted.full(shop({ endpoints: [near(), far()] }))).toEqual({ status: 'applied', writes: 0 });
    expect(await countersOf(protocol, restarted)).toEqual({ ...none, connections: 9 });
  });

  test.each<[string, () => SituationSpec, keyof ServiceCounters['drops']]>([
    ['no endpoint on this node', () => ({ external: 'Local', endpoints: [far()] }), 'noLocalEndpoint'],
    ['no endpoint', () => ({}), 'noEndpoints'],
    [
      'a source in no range',
      () => ({ endpoints: [near()], sourceRanges: [family === 'IPv4' ? '10.1.0.0/16' : 'fd01::/64'] }),
      'sourceRange',
    ],
  ])('refused UDP packets are counted by reason: %s', async (_, spec, reason) => {
    await kernel.full(shop(spec()));
    await connect(5, 'udp', 'vip');
    const { connections, drops } = (await countersOf('udp'))!;
    // Each prober sends its datagram again while it waits.
    expect(connections).toBeGreaterThanOrEqual(5);
    expect(drops).toEqual({ ...none.drops, [reason]: connections });
    await kernel.next(shop({ endpoints: [near()] }));
    await connect(2, 'udp', 'vip');
    expect(await countersOf('udp')).toEqual({
      connections: connections + 2,
      drops: { ...none.drops, [reason]: connections },
    });
  });
});
