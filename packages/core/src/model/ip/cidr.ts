import type { Branded } from '../../base/brand.ts';
import { shown, wrongArgument } from '../../base/argument.ts';
import { ConfigError } from '../../base/errors.ts';
import {
  type IpAddress,
  type IpFamily,
  ipFamilyOf,
  ipFromBytes,
  ipToBytes,
  requireIp,
  requireIpFamily,
  tryParseIp,
} from './address.ts';

/** `address/length` with canonical address and all host bits zero, so `===` is equality. */
export type Cidr = Branded<string, 'Cidr'>;

/** `text` (white space around it tolerated) as a canonical CIDR with its host bits cleared, or undefined. */
export function tryParseCidr(text: string): Cidr | undefined {
  if (typeof text !== 'string') return undefined;
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
  if (cidr === undefined) throw new ConfigError('cidr.invalid', `not a CIDR such as 10.0.0.0/8: ${shown(text)}`);
  return cidr;
}

/** Throws `UsageError` unless `value` is canonical; `name` is that of the argument, for the message. */
export function requireCidr(name: string, value: unknown): void {
  const cidr = typeof value === 'string' ? tryParseCidr(value) : undefined;
  if (cidr === undefined) throw wrongArgument(name, 'a CIDR such as 10.0.0.0/8', value);
  if (cidr !== value) throw wrongArgument(name, `canonical (${cidr}; parseCidr returns it)`, value);
}

/** The family of a CIDR. Throws `UsageError` for what has no `/`. */
export function cidrFamilyOf(cidr: Cidr): IpFamily {
  slashOf(cidr);
  return cidr.includes(':') ? 'IPv6' : 'IPv4';
}

/** Prefix length in bits. Throws `UsageError` for what has no `/`. */
export function cidrLength(cidr: Cidr): number {
  const slash = slashOf(cidr);
  return Number(cidr.slice(slash + 1));
}

/** Position of the slash. A cheap check of the CIDR: agents read parts of CIDRs often. */
function slashOf(cidr: Cidr): number {
  const slash = typeof cidr === 'string' ? cidr.indexOf('/') : -1;
  if (slash < 0) throw wrongArgument('cidr', 'a CIDR such as 10.0.0.0/8', cidr);
  return slash;
}

/** Whether `ip` lies in `cidr`; false across families. Throws `UsageError` for what is no address or no CIDR. */
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

/** The CIDR that contains `ip` alone. Throws `UsageError` for what is no canonical address. */
export function hostCidr(ip: IpAddress): Cidr {
  requireIp('hostCidr: ip', ip);
  return `${ip}/${ipFamilyOf(ip) === 'IPv4' ? 32 : 128}` as Cidr;
}

/** The CIDR of length 0. Throws `UsageError` for another family than IPv4 and IPv6. */
export function everythingOf(ipFamily: IpFamily): Cidr {
  requireIpFamily('everythingOf: ipFamily', ipFamily);
  return (ipFamily === 'IPv4' ? '0.0.0.0/0' : '::/0') as Cidr;
}

/** The addresses by which a node reaches itself alone: 127.0.0.0/8 or ::1/128. Throws `UsageError` for another family. */
export function loopbackOf(ipFamily: IpFamily): Cidr {
  requireIpFamily('loopbackOf: ipFamily', ipFamily);
  return (ipFamily === 'IPv4' ? '127.0.0.0/8' : '::1/128') as Cidr;
}

/** The loopback address on which the agent listens for NodePorts: 127.0.0.1 or ::1. Throws `UsageError` for another family. */
export function loopbackAddress(ipFamily: IpFamily): IpAddress {
  requireIpFamily('loopbackAddress: ipFamily', ipFamily);
  return (ipFamily === 'IPv4' ? '127.0.0.1' : '::1') as IpAddress;
}

/** Whether one of the two CIDRs contains the other; false across families. Throws `UsageError` for what is no CIDR. */
export function cidrsOverlap(a: Cidr, b: Cidr): boolean {
  return cidrContains(a, firstAddressOf(b)) || cidrContains(b, firstAddressOf(a));
}

function firstAddressOf(cidr: Cidr): IpAddress {
  const slash = slashOf(cidr);
  return cidr.slice(0, slash) as IpAddress; // a CIDR's address is canonical
}

function maskByte(length: number, index: number): number {
  const bits = Math.min(8, Math.max(0, length - index * 8));
  return (0xff << (8 - bits)) & 0xff;
}
