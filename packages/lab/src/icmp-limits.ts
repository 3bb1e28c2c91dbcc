import { HostError } from '@switchyard/core';
import type { LabHost } from './lab.ts';

/** Files below `/proc/net` that count the ICMP errors a network namespace held back, for IPv4 and IPv6. */
export const icmpCounterFiles = ['/proc/net/snmp', '/proc/net/snmp6'] as const;

/**
 * How many ICMP errors the rate limits of a network namespace have held back, by the texts of `icmpCounterFiles` in their order or together.
 * Undefined where the kernel does not count them: it counts from 6.3 on.
 */
export function icmpErrorsHeldBack(text: string): number | undefined {
  const [names = [], values = []] = [...text.matchAll(/^Icmp: (.*)$/gm)].map(([, words = '']) => words.split(' '));
  const v4 = ['OutRateLimitGlobal', 'OutRateLimitHost'].map((name) => values[names.indexOf(name)]);
  const v6 = /^Icmp6OutRateLimitHost\s+(\d+)/m.exec(text)?.[1];
  const known = [...v4, v6].filter((value) => value !== undefined).map(Number);
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0);
}

/** Lifts a host's limits on ICMP errors: tests of a dataplane provoke rejects faster, and expect each of them. Throws `HostError`. */
export async function liftIcmpLimits(node: LabHost): Promise<void> {
  const settings = ['ipv4/icmp_ratelimit', 'ipv6/icmp/ratelimit'].map((name) => `echo 0 > /proc/sys/net/${name}`);
  const most = ['icmp_msgs_per_sec', 'icmp_msgs_burst'].map(
    (name) => `f=/proc/sys/net/ipv4/${name}; if [ -w $f ]; then echo 1000000 > $f; fi`,
  );
  const { exitCode, stderr } = await node.run('sh', ['-ec', [...settings, ...most].join('\n')]);
  if (exitCode !== 0)
    throw new HostError('lab.icmp', `cannot lift the limits on ICMP errors of ${node.name}: ${stderr}`);
}
