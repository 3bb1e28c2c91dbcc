import { isIPv4 } from 'node:net';
import type { Branded } from '../../base/brand.ts';
import { shown, wrongArgument } from '../../base/argument.ts';
import { ConfigError, UsageError } from '../../base/errors.ts';

/** `IPv4` or `IPv6`, spelled as in the Kubernetes API. */
export type IpFamily = 'IPv4' | 'IPv6';
/** Four decimal octets without leading zeros. */
export type Ipv4 = Branded<string, 'Ipv4'>;
/** Canonical text of RFC 5952, never with a zone. */
export type Ipv6 = Branded<string, 'Ipv6'>;
/** Canonical text, so `===` is equality. */
export type IpAddress = Ipv4 | Ipv6;

/** Both families, in the order in which they are always walked. */
export const ipFamilies: readonly IpFamily[] = ['IPv4', 'IPv6'];

/** `::ffff:0:0/96`. With another number of groups behind it `::ffff:` stands elsewhere in the address. */
const mapped = /^::ffff:[^:]+:[^:]+$/;

/** Characters that cannot end the brackets of a URL, whose parser decides. The expression of `isIPv6` takes 15 ms to compile. */
const ipv6Characters = /^[\da-f:.]+$/i;

/** `text` as a canonical address, or undefined. IPv4-mapped IPv6 is rejected, as Kubernetes does. */
export function tryParseIp(text: string): IpAddress | undefined {
  if (typeof text !== 'string') return undefined;
  if (isIPv4(text)) return text as Ipv4;
  if (!ipv6Characters.test(text)) return undefined;
  const canonical = URL.parse(`http://[${text}]/`)?.hostname.slice(1, -1);
  return canonical === undefined || mapped.test(canonical) ? undefined : (canonical as Ipv6);
}

/** Like `tryParseIp`, but throws `ConfigError`. */
export function parseIp(text: string): IpAddress {
  const ip = tryParseIp(text);
  if (ip === undefined) throw new ConfigError('ip.invalid', `not an IP address: ${shown(text)}`);
  return ip;
}

/** Throws `UsageError` unless `value` is canonical; `name` is that of the argument, for the message. */
export function requireIp(name: string, value: unknown): void {
  const ip = typeof value === 'string' ? tryParseIp(value) : undefined;
  if (ip === undefined) throw wrongArgument(name, 'an IP address', value);
  if (ip !== value) throw wrongArgument(name, `canonical (${ip}; parseIp returns it)`, value);
}

/** Throws `UsageError` unless `value` is `IPv4` or `IPv6`; `name` is that of the argument, for the message. */
export function requireIpFamily(name: string, value: unknown): void {
  if (value !== 'IPv4' && value !== 'IPv6') throw wrongArgument(name, 'IPv4 or IPv6', value);
}

/** `text` without leading zeros in the octets of its IPv4 addresses; other readers take such octets for octal or refuse them. */
export function withoutLeadingZeros(text: string): string {
  if (typeof text !== 'string') throw wrongArgument('withoutLeadingZeros: text', 'a text', text);
  return text.replaceAll(/\b\d+(?:\.\d+){3}\b/g, (address) => address.replaceAll(/\b0+(?=\d)/g, ''));
}

/** The family of an address that `parseIp` made; other texts are not checked. Throws `UsageError` for what is no text. */
export function ipFamilyOf(ip: IpAddress): IpFamily {
  if (typeof ip !== 'string') throw wrongArgument('ip', 'an IP address', ip);
  return ip.includes(':') ? 'IPv6' : 'IPv4';
}

/** The address in network byte order: 4 or 16 bytes. Throws `UsageError` for what is no IP address. */
export function ipToBytes(ip: IpAddress): Uint8Array {
  if (isIPv4(ip)) return Uint8Array.from(ip.split('.'), Number);
  const fault = (): UsageError => wrongArgument('ip', 'an IP address', ip);
  if (typeof ip !== 'string') throw fault();
  const [head = '', tail, surplus] = ip.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const gap = 8 - left.length - right.length;
  if (surplus !== undefined || (tail === undefined ? gap !== 0 : gap < 1)) throw fault();
  const groups = [...left, ...Array<string>(gap).fill('0'), ...right];
  const bytes = new Uint8Array(16);
  groups.forEach((group, index) => {
    const value = Number(`0x${group}`); // unlike parseInt, NaN where not all of it is hexadecimal
    if (!(value <= 0xffff)) throw fault();
    bytes[index * 2] = value >> 8;
    bytes[index * 2 + 1] = value & 0xff;
  });
  return bytes;
}

/**
 * 16 bytes of 4 or 16 in network byte order: IPv4 as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2), IPv6 as it is, the same array.
 * Throws `UsageError` for another number of bytes or type.
 */
export function mappedBytes(address: Uint8Array): Uint8Array {
  if (!(address instanceof Uint8Array)) throw wrongArgument('mappedBytes: address', 'a Uint8Array', address);
  if (address.length === 16) return address;
  if (address.length !== 4) throw new UsageError('ip.bytes', `an IP address has 4 or 16 bytes, not ${address.length}`);
  const mapped = new Uint8Array(16);
  mapped[10] = mapped[11] = 0xff;
  mapped.set(address, 12);
  return mapped;
}

/**
 * The address of 4 or 16 bytes in network byte order, the inverse of `ipToBytes`. An IPv4-mapped IPv6 address, which
 * no parser here accepts, comes out in its long form. Throws `UsageError` for another number of bytes or type.
 */
export function ipFromBytes(bytes: Uint8Array): IpAddress {
  if (!(bytes instanceof Uint8Array)) throw wrongArgument('ipFromBytes: bytes', 'a Uint8Array', bytes);
  if (bytes.length === 4) return ipv4Text(bytes, 0) as Ipv4;
  if (bytes.length !== 16) throw new UsageError('ip.bytes', `an IP address has 4 or 16 bytes, not ${bytes.length}`);
  return ipv6Text(bytes, 0) as Ipv6;
}

/** Total order of addresses that `parseIp` made: IPv4 before IPv6, then by network-order bytes. */
export function compareIps(a: IpAddress, b: IpAddress): number {
  if (a === b) return 0;
  if (ipFamilyOf(a) === 'IPv4' && ipFamilyOf(b) === 'IPv4') return ipv4Number(a) - ipv4Number(b);
  const left = ipToBytes(a);
  const right = ipToBytes(b);
  if (left.length !== right.length) return left.length - right.length;
  for (let index = 0; index < left.length; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** The 32 bits of an IPv4 address as an unsigned number, without allocating: endpoints are sorted by it. */
function ipv4Number(ip: IpAddress): number {
  let bits = 0;
  let octet = 0;
  for (let index = 0; index < ip.length; index++) {
    const code = ip.charCodeAt(index);
    if (code === 0x2e) {
      bits = bits * 256 + octet;
      octet = 0;
    } else octet = octet * 10 + code - 0x30;
  }
  return bits * 256 + octet;
}

/** The text of the IPv4 address at `at`. Throws `UsageError` if there are less than 4 bytes. */
export function ipv4Text(bytes: Uint8Array, at: number): string {
  requireBytes('ipv4Text: bytes', { bytes, at, length: 4 });
  return `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`;
}

/**
 * The canonical text (RFC 5952) of the IPv6 address at `at`. An IPv4-mapped address, which Kubernetes
 * refuses, is written in full, so that it never equals a valid address. Throws `UsageError` if there are less than 16 bytes.
 */
export function ipv6Text(bytes: Uint8Array, at: number): string {
  requireBytes('ipv6Text: bytes', { bytes, at, length: 16 });
  const group = (index: number): number => ((bytes[at + index * 2] ?? 0) << 8) | (bytes[at + index * 2 + 1] ?? 0);
  const gap = longestZeros(group);
  if (gap.start === 0 && gap.length === 5 && group(5) === 0xffff) return groupsText(group, 0, 8);
  if (gap.length < 2) return groupsText(group, 0, 8);
  return `${groupsText(group, 0, gap.start)}::${groupsText(group, gap.start + gap.length, 8)}`;
}

interface ByteRange {
  readonly bytes: unknown;
  readonly at: number;
  readonly length: number;
}

function requireBytes(name: string, { bytes, at, length }: ByteRange): void {
  if (bytes instanceof Uint8Array && at >= 0 && bytes.length - at >= length) return;
  throw wrongArgument(name, `a Uint8Array with ${length} bytes from ${at}`, bytes);
}

function groupsText(group: (index: number) => number, from: number, to: number): string {
  let text = '';
  for (let index = from; index < to; index++) text += `${index > from ? ':' : ''}${group(index).toString(16)}`;
  return text;
}

/** The first of the longest rows of groups that are zero. */
function longestZeros(group: (index: number) => number): { readonly start: number; readonly length: number } {
  let best = { start: 0, length: 0 };
  for (let index = 0; index < 8; index++) {
    const start = index;
    while (index < 8 && group(index) === 0) index++;
    if (index - start > best.length) best = { start, length: index - start };
  }
  return best;
}
