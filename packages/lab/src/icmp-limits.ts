import { HostError } from '@switchyard/core';
import type { LabHost } from './lab.ts';

/** Files below `/proc/net` that count the ICMP errors suppressed in a network namespace, for IPv4 and IPv6. */
export const icmpCounterFiles = ['/proc/net/snmp', '/proc/net/snmp6'] as const;

/**
 * Returns the number of ICMP errors suppressed by the rate limits of a network namespace, from the texts of `icmpCounterFiles`.
 * Undefined before Linux 6.3, which does not count them.
 */
export function icmpErrorsHeldBack(text: string): number | undefined {
  const [names = [], values = []] = [...text.matchAll(/^Icmp: (.*)$/gm)].map(([, words = '']) => words.split(' '));
  const v4 = ['OutRateLimitGlobal', 'OutRateLimitHost'].map((name) => values[names.indexOf(name)]);
  const v6 = /^Icmp6OutRateLimitHost\s+(\d+)/m.exec(text)?.[1];
  const known = [...v4, v6].filter((value) => value !== undefined).map(Number);
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0);
}

/** Removes a host's rate limits of ICMP errors, because dataplane tests expect every reject. Throws `HostError`. */
export async function liftIcmpLimits(node: LabHost): Promise<void> {
  const settings = ['ipv4/icmp_ratelimit', 'ipv6/icmp/ratelimit'].map((name) => `echo 0 > /proc/sys/net/${name}`);
  const most = ['icmp_msgs_per_sec', 'icmp_msgs_burst'].map(
    (name) => `f=/proc/sys/net/ipv4/${name}; if [ -w $f ]; then echo 1000000 > $f; fi`,
  );
  const { exitCode, stderr } = await node.run('sh', ['-ec', [...settings, ...most].join('\n')]);
  if (exitCode !== 0)
    throw new HostError('lab.icmp', `cannot lift the limits on ICMP errors of ${node.name}: ${stderr}`);
}
