import { type IpAddress, type IpFamily, parseIp } from '@switchyard/core';

/**
 * Scenarios are written for IPv4 in the lab's address plan; the IPv6 twin shows the same digits:
 *
 *     172.18.0.N     fd00:172:18::N        nodes (node under test: .11), client .100
 *     10.244.I.N     fd00:10:244:I::N      pods of node I
 *     10.96.X.N      fd00:10:96::X:N       cluster IPs
 *     10.97.X.N      fd00:10:97::X:N       cluster IPs of a ServiceCIDR that is added
 *     198.51.100.N   2001:db8:51::N        load-balancer IPs
 *     203.0.113.N    2001:db8:113::N       external IPs
 *     127.0.0.1      ::1                   loopback
 */
const rules: readonly { readonly from: RegExp; readonly to: (match: RegExpExecArray) => string }[] = [
  { from: /^172\.18\.0\.(\d+)$/, to: (match) => `fd00:172:18::${match[1]}` },
  { from: /^10\.244\.(\d+)\.(\d+)$/, to: (match) => `fd00:10:244:${match[1]}::${match[2]}` },
  {
    from: /^10\.9([67])\.(\d+)\.(\d+)$/,
    to: (match) => `fd00:10:9${match[1]}::${match[2] === '0' ? '' : `${match[2]}:`}${match[3]}`,
  },
  { from: /^198\.51\.100\.(\d+)$/, to: (match) => `2001:db8:51::${match[1]}` },
  { from: /^127\.0\.0\.1$/, to: () => '::1' },
  { from: /^203\.0\.113\.(\d+)$/, to: (match) => `2001:db8:113::${match[1]}` },
];

const cidrs: ReadonlyMap<string, string> = new Map([
  ['0.0.0.0/0', '::/0'],
  ['172.18.0.0/24', 'fd00:172:18::/64'],
  ['10.244.0.0/16', 'fd00:10:244::/48'],
  ['10.96.0.0/16', 'fd00:10:96::/112'],
  ['10.97.0.0/16', 'fd00:10:97::/112'],
  ['127.0.0.0/8', '::1/128'],
]);

/** The IPv6 twin of an address of the plan; undefined for any other text. */
export function ipv6TwinOf(address: string): IpAddress | undefined {
  for (const rule of rules) {
    const match = rule.from.exec(address);
    if (match !== null) return parseIp(rule.to(match));
  }
  return undefined;
}

/** An IPv4 address of the plan, or its twin. Throws for an address outside the plan. */
export function inFamily(v4: string, ipFamily: IpFamily): IpAddress {
  return ipFamily === 'IPv4' ? parseIp(v4) : (ipv6TwinOf(v4) ?? parseIp(`no twin of ${v4}`));
}

/** IPv6 for IPv4, and the other way round. */
export function otherFamilyOf(ipFamily: IpFamily): IpFamily {
  return ipFamily === 'IPv4' ? 'IPv6' : 'IPv4';
}

/** The IPv6 twin of a CIDR: of the table above, or of a single address (`/32` becomes `/128`). */
export function ipv6TwinOfCidr(cidr: string): string | undefined {
  const known = cidrs.get(cidr);
  if (known !== undefined) return known;
  const twin = cidr.endsWith('/32') ? ipv6TwinOf(cidr.slice(0, -3)) : undefined;
  return twin === undefined ? undefined : `${twin}/128`;
}
