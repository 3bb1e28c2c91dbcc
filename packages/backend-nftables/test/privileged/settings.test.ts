import { type ForwardingTable, type IpFamily, ipFamilies, parseIp } from '@switchyard/core';
import { here, situation, type SituationOptions } from '@switchyard/core/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSite, Kernel, type Site } from './support.ts';

interface Plan {
  readonly clusterIp: string;
  /** Not in `serviceCidr`, but in the one that is added. */
  readonly later: string;
  readonly serviceCidr: string;
  readonly addedCidr: string;
  /** A second address of the node. */
  readonly second: string;
  readonly length: number;
}

const plans: Readonly<Record<IpFamily, Plan>> = {
  IPv4: {
    clusterIp: '10.96.0.10',
    later: '10.97.0.9',
    serviceCidr: '10.96.0.0/16',
    addedCidr: '10.97.0.0/16',
    second: '172.18.0.200',
    length: 32,
  },
  IPv6: {
    clusterIp: 'fd00:10:96::10',
    later: 'fd00:10:97::9',
    serviceCidr: 'fd00:10:96::/112',
    addedCidr: 'fd00:10:97::/112',
    second: 'fd00:172:18::200',
    length: 128,
  },
};

let site: Site;

beforeAll(async () => {
  site = await createSite('nfts');
  const addresses = ipFamilies.flatMap((family) => [plans[family].clusterIp, plans[family].later]);
  await site.lab.routeToNode(addresses.map(parseIp), site.node);
  for (const family of ipFamilies) {
    const { second, later, length } = plans[family];
    const nodad = family === 'IPv6' ? ['nodad'] : [];
    await site.node.run('ip', ['addr', 'add', `${second}/${length}`, 'dev', 'eth0', ...nodad]);
    // The node itself refuses packets that our rules let pass, at once.
    await site.node.run('ip', ['addr', 'add', `${later}/${length}`, 'dev', 'eth0', ...nodad]);
  }
});

afterAll(() => site[Symbol.asyncDispose]());

describe.each(ipFamilies)('%s', (family) => {
  const { clusterIp, later, serviceCidr, addedCidr, second, length } = plans[family];
  const table = (options: SituationOptions): ForwardingTable => {
    const ports = (['TCP', 'UDP'] as const).map((protocol) => ({
      name: protocol.toLowerCase(),
      protocol,
      port: 80,
      nodePort: 30080,
    }));
    const endpoints = [here(site.near.addresses[family]!)];
    return situation({ shop: { clusterIps: [clusterIp], ports, endpoints } }, { ipFamily: family, ...options });
  };
  const probe = async (protocol: 'tcp' | 'udp', address: string, port: number): Promise<string> =>
    (await site.client.probe({ protocol, address, port })).status;

  test.each(['tcp', 'udp'] as const)('%s NodePorts follow the addresses that are chosen', async (protocol) => {
    const first = site.node.addresses[family]!;
    const kernel = await Kernel.open(site.node, family);
    const at = (address: string): ForwardingTable => table({ nodePortCidrs: [`${address}/${length}`] });
    await kernel.full(at(first));
    expect([await probe(protocol, first, 30080), await probe(protocol, second, 30080)]).toEqual([
      'answered',
      'refused',
    ]);
    expect(await kernel.next(at(second))).toEqual({ status: 'applied', writes: 1 });
    expect([await probe(protocol, first, 30080), await probe(protocol, second, 30080)]).toEqual([
      'refused',
      'answered',
    ]);
  });

  test.each(['tcp', 'udp'] as const)('%s to a ServiceCIDR that is added is dropped from then on', async (protocol) => {
    const kernel = await Kernel.open(site.node, family);
    await kernel.full(table({ serviceCidrs: [serviceCidr] }));
    expect(await probe(protocol, later, 80)).toBe('refused');
    expect(await kernel.next(table({ serviceCidrs: [serviceCidr, addedCidr] }))).toEqual({
      status: 'applied',
      writes: 1,
    });
    expect(await probe(protocol, later, 80)).toBe('timeout');
    expect([await probe(protocol, clusterIp, 80), await probe(protocol, clusterIp, 81)]).toEqual([
      'answered',
      'refused',
    ]);
    await kernel.next(table({ serviceCidrs: [serviceCidr] }));
    expect(await probe(protocol, later, 80)).toBe('refused');
  });
});
