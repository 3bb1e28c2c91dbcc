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
import { existsSync, readFileSync } from 'node:fs';

/** One entry of `os.networkInterfaces`. */
export interface InterfaceAddress {
  readonly address: string;
}

const loopback: readonly Cidr[] = ['127.0.0.0/8', '::1/128'].map(parseCidr);

/** Addresses by interface, as `os.networkInterfaces` returns them. */
export type InterfaceAddresses = Readonly<Record<string, readonly InterfaceAddress[] | undefined>>;

/**
 * Returns the addresses of this machine's interfaces that are up, sorted and unique. Excludes loopback addresses and IPv6
 * link-local ones, which need an interface to be usable. Includes other addresses of a loopback interface: virtual addresses
 * are often assigned there, and the kernel answers them.
 */
export function nodeAddresses(interfaces: InterfaceAddresses = networkInterfaces()): readonly IpAddress[] {
  return listenAddresses(interfaces).filter((ip) => !loopback.some((cidr) => cidrContains(cidr, ip)));
}

/** Returns `nodeAddresses` and the loopback addresses: all addresses a server can listen on. */
export function listenAddresses(interfaces: InterfaceAddresses = networkInterfaces()): readonly IpAddress[] {
  const found = Object.values(interfaces)
    .flatMap((addresses) => addresses ?? [])
    .flatMap((one) => tryParseIp(one.address) ?? [])
    .filter((ip) => !/^fe[89ab][0-9a-f]:/.test(ip)); // link-local
  return [...new Set(found)].sort(compareIps);
}

/**
 * Returns the NodePort addresses of a family: those inside one of `cidrs` (`ForwardingTable.nodePortCidrs`). An empty list of
 * CIDRs gives none.
 */
export function nodePortAddresses(
  addresses: readonly IpAddress[],
  family: IpFamily,
  cidrs: readonly Cidr[],
): readonly IpAddress[] {
  return addresses.filter((ip) => ipFamilyOf(ip) === family && cidrs.some((cidr) => cidrContains(cidr, ip)));
}

/** Folders with the kernel's IP settings. */
export interface ProcFolders {
  readonly net: string;
  readonly sysctl: string;
}

/**
 * Returns the IP families available in this process's network namespace, IPv4 first. IPv6 is unavailable if the kernel lacks
 * it, or if `all.disable_ipv6` is set and no interface has an IPv6 address.
 */
export function hostIpFamilies(
  { net, sysctl }: ProcFolders = { net: '/proc/net', sysctl: '/proc/sys' },
): readonly IpFamily[] {
  const addresses = `${net}/if_inet6`;
  const disabled = `${sysctl}/net/ipv6/conf/all/disable_ipv6`;
  const isDisabled = existsSync(disabled) && readFileSync(disabled, 'utf8').trim() === '1';
  const hasIpv6 = existsSync(addresses) && (!isDisabled || readFileSync(addresses, 'utf8') !== '');
  return hasIpv6 ? ['IPv4', 'IPv6'] : ['IPv4'];
}
