import { existsSync, readFileSync } from 'node:fs';
import type { IpFamily } from '@switchyard/core';

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
  return hasIpv6(net, `${sysctl}/net/ipv6/conf/all/disable_ipv6`) ? ['IPv4', 'IPv6'] : ['IPv4'];
}

function hasIpv6(net: string, disabled: string): boolean {
  const addresses = `${net}/if_inet6`;
  if (!existsSync(addresses)) return false;
  const isDisabled = existsSync(disabled) && readFileSync(disabled, 'utf8').trim() === '1';
  return !isDisabled || readFileSync(addresses, 'utf8') !== '';
}
