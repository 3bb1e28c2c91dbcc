import { type Cidr, cidrContains, cidrLength, compareIps, type IpAddress } from '@switchyard/core';

/** Without CIDRs that others cover, sorted: interval sets refuse overlaps, which Kubernetes allows. */
export function withoutCovered(cidrs: readonly Cidr[]): readonly Cidr[] {
  if (cidrs.length < 2) return cidrs;
  const kept: Cidr[] = [];
  // Two CIDRs are apart or one covers the other, so only the last one that was kept can cover the next.
  for (const { cidr, first } of [...new Set(cidrs)].map(placeOf).sort(compare)) {
    const last = kept.at(-1);
    if (last === undefined || !cidrContains(last, first)) kept.push(cidr);
  }
  return kept.sort();
}

interface Place {
  readonly cidr: Cidr;
  readonly first: IpAddress;
}

function placeOf(cidr: Cidr): Place {
  return { cidr, first: cidr.slice(0, cidr.indexOf('/')) as IpAddress }; // canonical, as the whole is
}

/** By first address; of those that begin alike the larger one first. */
function compare(a: Place, b: Place): number {
  return compareIps(a.first, b.first) || cidrLength(a.cidr) - cidrLength(b.cidr);
}
