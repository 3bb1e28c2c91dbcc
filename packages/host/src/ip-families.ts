import { existsSync } from 'node:fs';
import type { IpFamily } from '@switchyard/core';

/** The IP families this kernel speaks, IPv4 first. `procNet` is where it says so. */
export function hostIpFamilies(procNet = '/proc/net'): readonly IpFamily[] {
  return existsSync(`${procNet}/if_inet6`) ? ['IPv4', 'IPv6'] : ['IPv4'];
}
