import { existsSync, readFileSync } from 'node:fs';
import type { IpFamily } from '@switchyard/core';

/** Where a kernel tells of its IP families. */
export interface ProcFolders {
  readonly net: string;
  readonly sysctl: string;
}

/**
 * The IP families that this kernel speaks in our network namespace, IPv4 first. There is no IPv6 when the kernel lacks
 * it, or when it is disabled for all interfaces: by `all.disable_ipv6`, and no interface has it back.
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
