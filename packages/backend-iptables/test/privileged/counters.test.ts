import {
  type ForwardingTable,
  type IpFamily,
  ipFamilies,
  parseIp,
  seconds,
  type ServicePortKey,
  systemClock,
} from '@switchyard/core';
import { type ServiceCounters } from '@switchyard/core/engine';
import { DrivenBackend, here, situation, type SituationSpec, there } from '@switchyard/core/testing';
import { createSite, type Site } from '@switchyard/lab';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { iptablesBackend } from '../../src/index.ts';
import { hostOf } from './site-host.ts';
import { signal, variant } from './support.ts';

const vips: Readonly<Record<IpFamily, string>> = { IPv4: '198.51.100.1', IPv6: '2001:db8:51::1' };
const clusterIps: Readonly<Record<IpFamily, string>> = { IPv4: '10.96.0.10', IPv6: 'fd00:10:96::10' };
const none: ServiceCounters = { connections: 0, drops: { noLocalEndpoint: 0, noEndpoints: 0, sourceRange: 0 } };

let site: Site;

beforeAll(async () => {
  site = await createSite(`cnt${variant}`.slice(0, 8), signal);
  const addresses = ipFamilies.flatMap((family) => [vips[family], clusterIps[family]]);
  await site.lab.routeToNode(addresses.map(parseIp), site.node);
});

afterAll(() => site[Symbol.asyncDispose]());

/** Readings cost nothing by this clock: each look is a new one. */
const clock = { ...systemClock, monotonic: () => seconds(0) };

/** A backend on a real kernel, and the last table given to it. */
class Kernel extends DrivenBackend {
  static async open(family: IpFamily): Promise<Kernel> {
    const host = { ...hostOf(site), localhostNodePorts: false, clock };
    return new Kernel(await iptablesBackend.open(host, family, signal));
  }
}

describe.each(ipFamilies)('%s', (family) => {
  let kernel: Kernel;

  beforeEach(async () => {
    kernel = await Kernel.open(family);
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
    const restarted = await Kernel.open(family);
    expect(await restarted.full(shop({ endpoints: [near(), far()] }))).toEqual({ status: 'applied', writes: 0 });
    expect(await countersOf(protocol, restarted)).toEqual({ ...none, connections: 9 });
  });

  test('totals go on while endpoints come and go, and with them rules', async () => {
    await kernel.full(shop({ endpoints: [near()] }));
    let total = 0;
    for (const endpoints of [[near(), far()], [], [far()], [], [near()]]) {
      await connect(2, 'tcp', 'vip');
      total += 2;
      expect((await countersOf('tcp'))?.connections).toBe(total);
      await kernel.next(shop({ endpoints }));
    }
    expect((await countersOf('tcp'))?.connections).toBe(total);
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
