import { networkInterfaces } from 'node:os';
import {
  cidrContains,
  compareIps,
  type Cidr,
  type IpAddress,
  type IpFamily,
  ipFamilyOf,
  parseCidr,
  tryParseIp,
} from '@switchyard/core';

/** What `os.networkInterfaces` tells of one address. */
export interface InterfaceAddress {
  readonly address: string;
}

const loopback: readonly Cidr[] = ['127.0.0.0/8', '::1/128'].map(parseCidr);

/** Addresses by interface, as `os.networkInterfaces` returns them. */
export type InterfaceAddresses = Readonly<Record<string, readonly InterfaceAddress[] | undefined>>;

/**
 * The addresses on this machine's interfaces that are up, sorted, each once. Loopback addresses and IPv6 link-local ones
 * (which mean nothing without an interface) are left out; others on a loopback interface are in: that is where virtual
 * addresses are often put, and the kernel answers them.
 */
export function nodeAddresses(interfaces: InterfaceAddresses = networkInterfaces()): readonly IpAddress[] {
  return listenAddresses(interfaces).filter((ip) => !loopback.some((cidr) => cidrContains(cidr, ip)));
}

/** `nodeAddresses` and the loopback addresses: all on which a server can listen. */
export function listenAddresses(interfaces: InterfaceAddresses = networkInterfaces()): readonly IpAddress[] {
  const found = Object.values(interfaces)
    .flatMap((addresses) => addresses ?? [])
    .flatMap((one) => tryParseIp(one.address) ?? [])
    .filter((ip) => !isLinkLocal(ip));
  return [...new Set(found)].sort(compareIps);
}

/**
 * Those of `addresses` in `family` on which NodePorts answer, as `ForwardingTable.nodePortCidrs` says:
 * inside one of the CIDRs; none for an empty list.
 */
export function nodePortAddresses(
  addresses: readonly IpAddress[],
  family: IpFamily,
  cidrs: readonly Cidr[],
): readonly IpAddress[] {
  return addresses.filter((ip) => ipFamilyOf(ip) === family && cidrs.some((cidr) => cidrContains(cidr, ip)));
}

function isLinkLocal(ip: IpAddress): boolean {
  return /^fe[89ab][0-9a-f]:/.test(ip);
}
