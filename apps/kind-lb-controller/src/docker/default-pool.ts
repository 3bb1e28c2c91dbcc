import {
  type Cidr,
  cidrFamilyOf,
  cidrLength,
  ConfigError,
  cidrContains,
  type IpAddress,
  ipFromBytes,
  ipToBytes,
  parseCidr,
  parseIp,
} from '@switchyard/core';

/**
 * Default pool of load-balancer addresses in a subnet: its top end, because engines assign addresses from the bottom. The last
 * /24 (IPv4) or /112 (IPv6); of a subnet that is not four times as large, its last quarter. Undefined: too small, it has no quarter with an
 * address for a host.
 */
export function defaultPool(subnet: Cidr): Cidr | undefined {
  const isIpv4 = cidrFamilyOf(subnet) === 'IPv4';
  const length = Math.max(isIpv4 ? 24 : 112, cidrLength(subnet) + 2);
  if (length > (isIpv4 ? 31 : 127)) return undefined;
  return parseCidr(`${lastAddressOf(subnet)}/${length}`);
}

/** Addresses of a subnet that no host may have: the first, IPv4's last (broadcast), and the first host's, which is the gateway's unless said otherwise. */
export function unusableAddresses(subnet: Cidr): readonly IpAddress[] {
  const first = firstAddressOf(subnet);
  const bytes = ipToBytes(first);
  const second = ipFromBytes(bytes.map((byte, index) => (index === bytes.length - 1 ? byte | 1 : byte)));
  return cidrFamilyOf(subnet) === 'IPv4' ? [first, second, lastAddressOf(subnet)] : [first, second];
}

/** Throws `ConfigError` unless every CIDR of `--pool` lies in one of the network's subnets. */
export function checkPool(pool: readonly Cidr[], network: string, subnets: readonly Cidr[]): void {
  for (const cidr of pool) {
    if (subnets.some((subnet) => isWithin(cidr, subnet))) continue;
    throw new ConfigError(
      'lb.pool',
      `--pool: ${cidr} is not inside network ${network}, which has ${subnets.join(' and ')}; name a part of it, at its top end`,
    );
  }
}

function isWithin(inner: Cidr, outer: Cidr): boolean {
  return cidrLength(inner) >= cidrLength(outer) && cidrContains(outer, firstAddressOf(inner));
}

function firstAddressOf(cidr: Cidr): IpAddress {
  return parseIp(cidr.slice(0, cidr.indexOf('/')));
}

function lastAddressOf(cidr: Cidr): IpAddress {
  const length = cidrLength(cidr);
  const bytes = ipToBytes(firstAddressOf(cidr));
  return ipFromBytes(bytes.map((byte, index) => byte | (0xff >> Math.min(8, Math.max(0, length - index * 8)))));
}
