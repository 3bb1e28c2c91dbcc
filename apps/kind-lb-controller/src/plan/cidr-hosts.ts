import { type Cidr, cidrFamilyOf, cidrLength, type IpAddress, ipFromBytes, ipToBytes, parseIp } from '@switchyard/core';

/** The addresses of a CIDR that a host may have, ascending; lazily, for IPv6 ones have many. */
export function* hostsOf(cidr: Cidr): Generator<IpAddress> {
  const { base, size, bits } = boundsOf(cidr);
  for (let offset = 0n; offset < size; offset++) {
    const ip = addressOf(base + offset, bits);
    if (isHostOf(cidr, ip)) yield ip;
  }
}

/**
 * Whether a host may have an address of a CIDR: not the first one (the network's name, or the routers' anycast), nor IPv4's last
 * one (broadcast). A CIDR of one or two addresses has hosts only (RFC 3021).
 */
export function isHostOf(cidr: Cidr, ip: IpAddress): boolean {
  const { base, size, bits } = boundsOf(cidr);
  if (size <= 2n) return true;
  const offset = numberOf(ip) - base;
  return offset > 0n && (bits === 128 || offset < size - 1n);
}

function boundsOf(cidr: Cidr): { readonly base: bigint; readonly size: bigint; readonly bits: 32 | 128 } {
  const bits = cidrFamilyOf(cidr) === 'IPv4' ? 32 : 128;
  const base = numberOf(parseIp(cidr.slice(0, cidr.indexOf('/'))));
  return { base, size: 1n << BigInt(bits - cidrLength(cidr)), bits };
}

function numberOf(ip: IpAddress): bigint {
  return ipToBytes(ip).reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}

function addressOf(number: bigint, bits: 32 | 128): IpAddress {
  const bytes = Uint8Array.from({ length: bits / 8 }, (_, index) =>
    Number((number >> BigInt(bits - 8 - 8 * index)) & 255n),
  );
  return ipFromBytes(bytes);
}
