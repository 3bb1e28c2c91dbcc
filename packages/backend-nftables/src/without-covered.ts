import { type Cidr, cidrContains, cidrLength, parseIp } from '@switchyard/core';

/**
 * The same addresses without a CIDR that another one covers, sorted. Interval sets refuse overlaps, and Kubernetes
 * allows them: a ServiceCIDR may lie within another, a source range too.
 */
export function withoutCovered(cidrs: readonly Cidr[]): readonly Cidr[] {
  const distinct = [...new Set(cidrs)];
  const isCovered = (cidr: Cidr): boolean =>
    distinct.some((other) => other !== cidr && cidrLength(other) <= cidrLength(cidr) && covers(other, cidr));
  return distinct.filter((cidr) => !isCovered(cidr)).sort();
}

function covers(outer: Cidr, inner: Cidr): boolean {
  return cidrContains(outer, parseIp(inner.slice(0, inner.indexOf('/'))));
}
