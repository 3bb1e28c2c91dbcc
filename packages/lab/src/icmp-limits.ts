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
