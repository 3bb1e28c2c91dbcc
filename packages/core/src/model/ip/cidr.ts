import type { Branded } from '../../base/brand.ts';
import { ConfigError } from '../../base/errors.ts';
import { type IpAddress, type IpFamily, ipFamilyOf, ipFromBytes, ipToBytes, tryParseIp } from './address.ts';

/** `address/length` with canonical address and all host bits zero, so `===` is equality. */
export type Cidr = Branded<string, 'Cidr'>;

/** `text` (white space around it tolerated) as a canonical CIDR with its host bits cleared, or undefined. */
export function tryParseCidr(text: string): Cidr | undefined {
  const match = /^([0-9a-fA-F.:]+)\/(0|[1-9][0-9]{0,2})$/.exec(text.trim());
  const ip = match?.[1] === undefined ? undefined : tryParseIp(match[1]);
  if (ip === undefined) return undefined;
  const bytes = ipToBytes(ip);
  const length = Number(match?.[2]);
  if (length > bytes.length * 8) return undefined;
  const masked = bytes.map((byte, index) => byte & maskByte(length, index));
  return `${ipFromBytes(masked)}/${length}` as Cidr;
}

/** Like `tryParseCidr`, but throws `ConfigError`. */
export function parseCidr(text: string): Cidr {
  const cidr = tryParseCidr(text);
  if (cidr === undefined)
    throw new ConfigError('cidr.invalid', `not a CIDR such as 10.0.0.0/8: ${JSON.stringify(text)}`);
  return cidr;
}

/** The family of a canonical CIDR. */
export function cidrFamilyOf(cidr: Cidr): IpFamily {
  return cidr.includes(':') ? 'IPv6' : 'IPv4';
}

/** Prefix length in bits. */
export function cidrLength(cidr: Cidr): number {
  return Number(cidr.slice(cidr.indexOf('/') + 1));
}

/** Whether `ip` lies in `cidr`; false across families. */
export function cidrContains(cidr: Cidr, ip: IpAddress): boolean {
  if (cidrFamilyOf(cidr) !== ipFamilyOf(ip)) return false;
  const base = ipToBytes(firstAddressOf(cidr));
  const length = cidrLength(cidr);
  return ipToBytes(ip).every((byte, index) => (byte & maskByte(length, index)) === base[index]);
}

/** Whether the CIDR has length 0, that is, covers its whole family. */
export function isEverything(cidr: Cidr): boolean {
  return cidrLength(cidr) === 0;
}

/** The CIDR that contains `ip` alone. */
export function hostCidr(ip: IpAddress): Cidr {
  return `${ip}/${ipFamilyOf(ip) === 'IPv4' ? 32 : 128}` as Cidr;
}

/** The CIDR of length 0. */
export function everythingOf(ipFamily: IpFamily): Cidr {
  return (ipFamily === 'IPv4' ? '0.0.0.0/0' : '::/0') as Cidr;
}

/** The addresses by which a node reaches itself alone: 127.0.0.0/8 or ::1/128. */
export function loopbackOf(ipFamily: IpFamily): Cidr {
  return (ipFamily === 'IPv4' ? '127.0.0.0/8' : '::1/128') as Cidr;
}

/** The loopback address on which the agent listens for NodePorts: 127.0.0.1 or ::1. */
export function loopbackAddress(ipFamily: IpFamily): IpAddress {
  return (ipFamily === 'IPv4' ? '127.0.0.1' : '::1') as IpAddress;
}

/** Whether one of the two CIDRs contains the other; false across families. */
export function cidrsOverlap(a: Cidr, b: Cidr): boolean {
  return cidrContains(a, firstAddressOf(b)) || cidrContains(b, firstAddressOf(a));
}

function firstAddressOf(cidr: Cidr): IpAddress {
  return cidr.slice(0, cidr.indexOf('/')) as IpAddress; // a CIDR's address is canonical
}

function maskByte(length: number, index: number): number {
  const bits = Math.min(8, Math.max(0, length - index * 8));
  return (0xff << (8 - bits)) & 0xff;
}
