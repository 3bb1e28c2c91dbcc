import { type IpAddress, tryParseIp } from '../ip/address.ts';
import { type Cidr, tryParseCidr } from '../ip/cidr.ts';

// API servers before strict validation (KEP-4858, on since Kubernetes 1.36) accepted other spellings of addresses. Such
// objects live on, and kube-proxy reads them: leading zeros mean nothing, an IPv4-mapped IPv6 address is the IPv4 address.

const leadingZeros = /(^|[./])0+(?=[0-9])/g;
const mappedIpv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** The address of a stored object, or undefined. */
export function readIp(text: string): IpAddress | undefined {
  const canonical = tryParseIp(text);
  if (canonical !== undefined) return canonical;
  const ipv4 = mappedIpv4.exec(text)?.[1] ?? text;
  return ipv4.includes(':') ? undefined : tryParseIp(ipv4.replaceAll(leadingZeros, '$1'));
}

/** The CIDR of a stored object, or undefined. As in kube-proxy, an IPv4-mapped CIDR belongs to no family. */
export function readCidr(text: string): Cidr | undefined {
  return tryParseCidr(text.trim().replaceAll(leadingZeros, '$1'));
}

/**
 * Ranges that allow no sender: a packet never comes from the unspecified address (RFC 1122, 3.2.1.3; RFC 4291, 2.5.2).
 * They take the place of `loadBalancerSourceRanges` of which none can be read, since an empty list allows everybody.
 */
export const allowsNobody: readonly Cidr[] = ['0.0.0.0/32' as Cidr, '::/128' as Cidr];
