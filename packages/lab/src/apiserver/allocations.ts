import {
  type Cidr,
  cidrContains,
  cidrFamilyOf,
  type IpAddress,
  type IpFamily,
  ipFromBytes,
  ipToBytes,
  type Random,
} from '@switchyard/core';

/** First and last port of the node port range. */
export const nodePortRange: { readonly first: number; readonly last: number } = { first: 30_000, last: 32_767 };

/**
 * Cluster-wide pools: cluster IPs and node ports. A value is taken if a stored object claims it, so an
 * allocation that is not stored (dry run, failed validation) needs no release.
 *
 * Claims are texts: `ip/10.96.0.10`, `port/TCP/30080`, `port/health/31234`.
 */
export interface Allocations {
  /** Families with a configured range, the cluster's default first. */
  readonly families: readonly IpFamily[];
  /** Whether `ip` lies in the range of its family. */
  isInRange(ip: IpAddress): boolean;
  isTaken(claim: string): boolean;
  /** A free address, or undefined when the range is full. */
  freeIp(family: IpFamily): IpAddress | undefined;
  /** A free node port outside `without`, or undefined when all are taken. */
  freePort(without: ReadonlySet<number>): number | undefined;
  /** Replaces the claims of one object. Only the store calls this. */
  replace(previous: readonly string[], next: readonly string[]): void;
}

/** Makes the pools of a cluster whose Services get addresses from `cidrs` (at most one per family). */
export function createAllocations(cidrs: readonly Cidr[], random: Random): Allocations {
  const taken = new Set<string>();
  const takenPorts = new Map<number, number>();
  const cidrOf = new Map(cidrs.map((cidr) => [cidrFamilyOf(cidr), cidr]));
  const countPort = (claim: string, change: number): void => {
    if (!claim.startsWith('port/')) return;
    const port = Number(claim.slice(claim.lastIndexOf('/') + 1));
    const count = (takenPorts.get(port) ?? 0) + change;
    if (count === 0) takenPorts.delete(port);
    else takenPorts.set(port, count);
  };
  return {
    families: cidrs.map((cidr) => cidrFamilyOf(cidr)),
    isInRange: (ip) => cidrs.some((cidr) => cidrContains(cidr, ip)),
    isTaken: (claim) => taken.has(claim),
    freeIp: (family) => {
      const cidr = cidrOf.get(family);
      return cidr === undefined ? undefined : freeIpIn(cidr, taken, random);
    },
    freePort: (without) => {
      const size = nodePortRange.last - nodePortRange.first + 1;
      const start = Math.floor(random() * size);
      for (let step = 0; step < size; step++) {
        const port = nodePortRange.first + ((start + step) % size);
        if (!takenPorts.has(port) && !without.has(port)) return port;
      }
      return undefined;
    },
    replace: (previous, next) => {
      for (const claim of previous) if (taken.delete(claim)) countPort(claim, -1);
      for (const claim of next) {
        if (taken.has(claim)) continue;
        taken.add(claim);
        countPort(claim, +1);
      }
    },
  };
}

/** Random start, then upwards with wrap-around, as the real allocator does. Host 0 and the IPv4 broadcast address stay free. */
function freeIpIn(cidr: Cidr, taken: ReadonlySet<string>, random: Random): IpAddress | undefined {
  const slash = cidr.indexOf('/');
  const base = ipToBytes(cidr.slice(0, slash) as IpAddress);
  const hostBits = Math.min(base.length * 8 - Number(cidr.slice(slash + 1)), 20);
  const last = 2 ** hostBits - (base.length === 4 ? 2 : 1);
  const start = Math.floor(random() * last);
  for (let step = 0; step < last; step++) {
    const ip = addToIp(base, 1 + ((start + step) % last));
    if (!taken.has(`ip/${ip}`)) return ip;
  }
  return undefined;
}

/** The address `offset` above `base` (network byte order), as canonical text. */
function addToIp(base: Uint8Array, offset: number): IpAddress {
  const bytes = Uint8Array.from(base);
  let carry = offset;
  for (let index = bytes.length - 1; index >= 0 && carry > 0; index--) {
    const sum = (bytes[index] ?? 0) + (carry & 0xff);
    bytes[index] = sum & 0xff;
    carry = (carry >>> 8) + (sum >>> 8);
  }
  return ipFromBytes(bytes);
}
