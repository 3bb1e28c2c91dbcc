import {
  type EndpointSliceRecord,
  type Flow,
  ipFamilyOf,
  type IpFamily,
  parseIp,
  parsePort,
  type Random,
  type ServiceCidrRecord,
  type ServiceRecord,
} from '@switchyard/core';
import { type ClusterSpec, type OptionsSpec, node, service, serviceCidr, slice } from '@switchyard/core/testing';

/** Draws from lists, all from one source of numbers. */
export class Dice {
  readonly random: Random;

  constructor(random: Random) {
    this.random = random;
  }

  below(limit: number): number {
    return Math.floor(this.random() * limit);
  }

  one<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item; // no list here is empty
  }

  some<Item>(items: readonly Item[], part: number): readonly Item[] {
    return items.filter(() => this.random() < part);
  }

  is(part: number): boolean {
    return this.random() < part;
  }
}

/** Few addresses, so that Services meet, slices share endpoints, and flows hit something. */
interface Pool {
  /** Some are in no service CIDR: one that was removed by force, or is known to another API server only. */
  readonly vips: readonly string[];
  readonly externals: readonly string[];
  readonly pods: readonly string[];
  readonly nodeAddresses: readonly string[];
  readonly ranges: readonly string[];
  readonly cidrs: readonly string[];
  readonly elsewhere: readonly string[];
  readonly clients: Readonly<Record<Flow['from'], readonly string[]>>;
}

const upTo = (count: number, text: (index: number) => string): readonly string[] =>
  Array.from({ length: count }, (_, index) => text(index + 1));

const pools: Readonly<Record<IpFamily, Pool>> = {
  IPv4: {
    vips: upTo(30, (index) => (index % 5 === 0 ? `10.200.0.${index}` : `10.96.0.${index}`)),
    externals: upTo(6, (index) => `198.51.100.${index}`),
    pods: upTo(40, (index) => `10.244.${index % 3}.${index}`),
    nodeAddresses: ['192.0.2.1', '192.0.2.2', '198.51.100.1'],
    ranges: ['203.0.113.0/24', '203.0.113.128/25', '203.0.0.0/16', '10.244.0.0/16', '0.0.0.0/0', '192.0.2.1/32'],
    cidrs: ['10.96.0.0/16', '10.97.0.0/24', '10.96.0.0/27'],
    elsewhere: ['10.96.9.9', '10.97.0.1', '203.0.113.9', '10.244.1.1', '127.0.0.1'],
    clients: {
      pod: ['10.244.1.1', '10.244.2.200'],
      node: ['192.0.2.1'],
      outside: ['203.0.113.9', '203.0.113.200', '100.64.0.1'],
    },
  },
  IPv6: {
    vips: upTo(30, (index) => `fd00:10:${index % 5 === 0 ? 200 : 96}::${index.toString(16)}`),
    externals: upTo(6, (index) => `2001:db8:f::${index}`),
    pods: upTo(40, (index) => `fd00:10:244:${index % 3}::${index.toString(16)}`),
    nodeAddresses: ['2001:db8::1', '2001:db8::2', '2001:db8:f::1'],
    ranges: ['2001:db8:c::/64', '2001:db8:c::/120', '::/0', 'fd00:10:244::/56', '2001:db8::1/128'],
    cidrs: ['fd00:10:96::/112', 'fd00:10:97::/120', 'fd00:10:96::/124'],
    elsewhere: ['fd00:10:96::9999', 'fd00:10:97::1', '2001:db8:c::9', 'fd00:10:244:1::1', '::1'],
    clients: {
      pod: ['fd00:10:244:1::1', 'fd00:10:244:2::200'],
      node: ['2001:db8::1'],
      outside: ['2001:db8:c::9', '2001:db8:c::ff00', '2001:db8:d::1'],
    },
  },
};

const portNumbers = [53, 80, 443];
const nodePorts = [30_001, 30_002, 30_003, 30_004];
const protocols = ['TCP', 'UDP', 'SCTP'] as const;

/** Up to 30 Services and their slices. */
export function randomCluster(dice: Dice, family: IpFamily): ClusterSpec {
  const pool = pools[family];
  const keys = pool.vips.map((_, index) => `ns/svc-${index}`).filter(() => dice.is(0.8));
  return {
    services: keys.map((key) => randomService(dice, pool, key)),
    slices: keys.flatMap((key) => (dice.is(0.85) ? [randomSlice(dice, family, key)] : [])),
    nodes: [node('n1', { zone: 'a', addresses: [pool.nodeAddresses[0] ?? ''] })],
    serviceCidrs: dice.is(0.8) ? randomCidrs(dice, pool) : [],
  };
}

/** The first one is always there: Kubernetes removes no ServiceCIDR that has Services. */
function randomCidrs(dice: Dice, { cidrs }: Pool): readonly ServiceCidrRecord[] {
  return cidrs
    .filter((_, index) => index === 0 || dice.is(0.5))
    .map((cidr, index) => serviceCidr(`cidr-${index}`, cidr));
}

function randomService(dice: Dice, pool: Pool, key: string): ServiceRecord {
  const ports = dice.some(portNumbers, 0.5).map((port) => ({
    name: `p${port}`,
    port,
    protocol: dice.one(protocols),
    ...(dice.is(0.6) ? { nodePort: dice.one(nodePorts) } : {}),
  }));
  return service(key, {
    type: dice.one(['ClusterIP', 'NodePort', 'LoadBalancer'] as const),
    clusterIps: [pool.vips[Number(key.slice('ns/svc-'.length))] ?? ''],
    ports: ports.length > 0 ? ports : [{ name: 'p80', port: 80 }],
    externalIps: dice.is(0.3) ? [dice.one(pool.externals)] : [],
    loadBalancerIps: dice.some(pool.externals, 0.2),
    sourceRanges: dice.is(0.3) ? dice.some(pool.ranges, 0.3) : [],
    external: dice.one(['Cluster', 'Local'] as const),
    internal: dice.is(0.3) ? 'Local' : 'Cluster',
    ...(dice.is(0.3) ? { affinitySeconds: 600 } : {}),
  });
}

function randomSlice(dice: Dice, family: IpFamily, key: string): EndpointSliceRecord {
  return slice(key, {
    ipFamily: family,
    ports: portNumbers.flatMap((port) =>
      protocols.map((protocol) => ({ name: `p${port}`, protocol, port: port + 8000 })),
    ),
    endpoints: dice.some(pools[family].pods, dice.one([0, 0.05, 0.1, 0.5])).map((ip) => ({
      ip,
      node: dice.one(['n1', 'n2', 'n3']),
      ready: dice.is(0.7),
      serving: dice.is(0.7),
      terminating: dice.is(0.3),
    })),
  });
}

/** Settings of a table: with and without pod detection, NodePorts on some addresses. */
export function randomOptions(dice: Dice, family: IpFamily): OptionsSpec {
  const isV4 = family === 'IPv4';
  return {
    ipFamily: family,
    masqueradeAll: dice.is(0.3),
    ...(dice.is(0.3) ? { podCidr: 'none' } : {}),
    ...(dice.is(0.4) ? { nodePortCidrs: [isV4 ? '192.0.2.0/31' : '2001:db8::/127'] } : {}),
  };
}

/** Addresses of the node that asks. */
export function nodeAddressesOf(family: IpFamily): readonly string[] {
  return pools[family].nodeAddresses;
}

/** A possible packet. */
export function randomFlow(dice: Dice, family: IpFamily): Flow {
  const pool = pools[family];
  const from = dice.one(['pod', 'node', 'outside'] as const);
  const destinations = dice.one([pool.vips, pool.vips, pool.externals, pool.nodeAddresses, pool.elsewhere]);
  const destination = dice.one(destinations);
  const isNodePort = dice.is(pool.nodeAddresses.includes(destination) ? 0.7 : 0.05);
  return {
    from,
    source: parseIp(dice.one(pool.clients[from])),
    destination: parseIp(destination),
    destinationPort: parsePort(dice.one(isNodePort ? nodePorts : [...portNumbers, 81])),
    protocol: dice.one(['TCP', 'UDP'] as const),
    destinationIsLocal:
      pool.nodeAddresses.includes(destination) || destination === '127.0.0.1' || destination === '::1',
  };
}

/** As `Flow`, in a few words. */
export function describeFlow({ from, source, destination, destinationPort, protocol }: Flow): string {
  const to = ipFamilyOf(destination) === 'IPv6' ? `[${destination}]` : destination;
  return `${from} ${source} to ${to}:${destinationPort}/${protocol}`;
}
