import { type Cidr, cidrFamilyOf, cidrLength, type IpAddress, ipToBytes, mappedBytes } from '@switchyard/core';

/** Bits of `::ffff:0:0/96`, by which an IPv4 prefix is longer in maps. */
const mappedBits = 96;

/** An address as maps have it: 16 bytes, IPv4 as ::ffff:a.b.c.d. */
export function addressBytes(ip: IpAddress): Uint8Array {
  return mappedBytes(ipToBytes(ip));
}

/** The first address of a CIDR, as maps have it. */
export function firstAddressBytes(cidr: Cidr): Uint8Array {
  return addressBytes(cidr.slice(0, cidr.indexOf('/')) as IpAddress); // canonical, as the whole is
}

/** Prefix length of a CIDR within 16 bytes. */
export function prefixBits(cidr: Cidr): number {
  return cidrLength(cidr) + (cidrFamilyOf(cidr) === 'IPv4' ? mappedBits : 0);
}

/** The mask of a CIDR: ones for the bits it fixes. */
export function maskBytes(cidr: Cidr): Uint8Array {
  const bits = prefixBits(cidr);
  return Uint8Array.from({ length: 16 }, (_, index) => {
    const ones = Math.min(8, Math.max(0, bits - index * 8));
    return (0xff << (8 - ones)) & 0xff;
  });
}

/** Whether an address, as maps have it, is in a CIDR. */
export function isInCidr(address: Uint8Array, cidr: Cidr): boolean {
  const first = firstAddressBytes(cidr);
  return maskBytes(cidr).every((mask, index) => ((address[index] ?? 0) & mask) === first[index]);
}
