import {
  type Cidr,
  cidrContains,
  cidrFamilyOf,
  cidrLength,
  type IpAddress,
  type IpFamily,
  ipFamilies,
  ipFamilyOf,
  ipToBytes,
  parseIp,
  type Port,
  type ServiceKey,
} from '@switchyard/core';

/** Where the addresses of load balancers come from. */
export type AddressSource =
  /** The load-balancer host's own addresses, at most one per family: Services share them on different ports. */
  | { readonly kind: 'shared'; readonly addresses: readonly IpAddress[] }
  /** Every Service gets addresses of its own. */
  | {
      readonly kind: 'pool';
      readonly cidrs: readonly Cidr[];
      /** Never given to anybody: others have them. Absent: none. */
      readonly reserved?: readonly IpAddress[];
    };

/** One Service that wants addresses. */
export interface AddressRequest {
  readonly service: ServiceKey;
  /** Older Services come first; equal ages are ordered by key. */
  readonly createdAt: string;
  readonly ipFamilies: readonly IpFamily[];
  /** TCP ports it will listen on. */
  readonly ports: readonly Port[];
  /** Addresses it has been given before; kept where possible. */
  readonly held: readonly IpAddress[];
  readonly requestedIp: IpAddress | undefined;
}

/** A port that another Service has on the same address. */
export interface PortConflict {
  readonly address: IpAddress;
  readonly port: Port;
  readonly heldBy: ServiceKey;
}

/** What one Service gets. */
export interface AddressGrant {
  /** At most one per family, IPv4 first. Empty when there is none to have. */
  readonly addresses: readonly IpAddress[];
  /** Families the Service has and we could give no address of. */
  readonly missing: readonly IpFamily[];
  /** Ports that must not be listened on. Only where addresses are shared. */
  readonly conflicts: readonly PortConflict[];
}

/**
 * Addresses for all Services at once. Depends on the requests only, not on their order: the older Service wins, and
 * from a pool everybody keeps what it holds, then gets what it asked for by name, then the lowest free address.
 */
export function assignAddresses(
  requests: readonly AddressRequest[],
  source: AddressSource,
): ReadonlyMap<ServiceKey, AddressGrant> {
  const byAge = [...requests].sort(
    (a, b) => compareTexts(a.createdAt, b.createdAt) || compareTexts(a.service, b.service),
  );
  return source.kind === 'shared' ? shareAddresses(byAge, source.addresses) : drawFromPool(byAge, source.cidrs);
}

/** Whether an address can have come from the source. */
export function isFromSource(source: AddressSource, ip: IpAddress): boolean {
  return source.kind === 'shared' ? source.addresses.includes(ip) : source.cidrs.some((cidr) => cidrContains(cidr, ip));
}

function shareAddresses(
  requests: readonly AddressRequest[],
  shared: readonly IpAddress[],
): ReadonlyMap<ServiceKey, AddressGrant> {
  const holders = new Map<string, ServiceKey>();
  const grants = new Map<ServiceKey, AddressGrant>();
  for (const request of requests) {
    const addresses = perFamily(request, (family) => shared.find((ip) => ipFamilyOf(ip) === family));
    const conflicts: PortConflict[] = [];
    for (const address of addresses) {
      for (const port of request.ports) {
        const heldBy = holders.get(`${address} ${port}`);
        if (heldBy === undefined) holders.set(`${address} ${port}`, request.service);
        else conflicts.push({ address, port, heldBy });
      }
    }
    grants.set(request.service, { addresses, missing: missingFamilies(request, addresses), conflicts });
  }
  return grants;
}

function drawFromPool(
  requests: readonly AddressRequest[],
  cidrs: readonly Cidr[],
): ReadonlyMap<ServiceKey, AddressGrant> {
  const taken = new Map<IpAddress, ServiceKey>();
  const isOnOffer = (ip: IpAddress): boolean => cidrs.some((cidr) => cidrContains(cidr, ip) && isHostOf(cidr, ip));
  const take = (ip: IpAddress | undefined, by: ServiceKey): IpAddress | undefined => {
    if (ip === undefined || !isOnOffer(ip) || (taken.get(ip) ?? by) !== by) return undefined;
    taken.set(ip, by);
    return ip;
  };
  const wishes = (one: AddressRequest, family: IpFamily): readonly IpAddress[] =>
    [one.requestedIp, ...one.held].filter((ip) => ip !== undefined).filter((ip) => ipFamilyOf(ip) === family);
  // Two rounds: nobody who holds an address may lose it to somebody who only needs any.
  const kept = new Map(
    requests.map((one) => [
      one.service,
      perFamily(one, (family) => {
        for (const ip of wishes(one, family)) if (take(ip, one.service) !== undefined) return ip;
        return undefined;
      }),
    ]),
  );
  const grants = new Map<ServiceKey, AddressGrant>();
  for (const request of requests) {
    const addresses = perFamily(
      request,
      (family) =>
        kept.get(request.service)?.find((ip) => ipFamilyOf(ip) === family) ??
        take(firstFree(cidrs, family, taken), request.service),
    );
    grants.set(request.service, { addresses, missing: missingFamilies(request, addresses), conflicts: [] });
  }
  return grants;
}

function perFamily(
  { ipFamilies: wanted }: AddressRequest,
  find: (family: IpFamily) => IpAddress | undefined,
): readonly IpAddress[] {
  return ipFamilies.filter((family) => wanted.includes(family)).flatMap((family) => find(family) ?? []);
}

function missingFamilies({ ipFamilies: wanted }: AddressRequest, addresses: readonly IpAddress[]): readonly IpFamily[] {
  return ipFamilies.filter((one) => wanted.includes(one) && !addresses.some((ip) => ipFamilyOf(ip) === one));
}

function firstFree(
  cidrs: readonly Cidr[],
  family: IpFamily,
  taken: ReadonlyMap<IpAddress, unknown>,
): IpAddress | undefined {
  for (const cidr of cidrs.filter((one) => cidrFamilyOf(one) === family)) {
    for (const ip of hostsOf(cidr)) if (!taken.has(ip)) return ip;
  }
  return undefined;
}

/** The addresses of a CIDR that a host may have, ascending; lazily, for IPv6 ones have many. */
function* hostsOf(cidr: Cidr): Generator<IpAddress> {
  const { base, size, bits } = boundsOf(cidr);
  for (let offset = 0n; offset < size; offset++) {
    const ip = addressOf(base + offset, bits);
    if (isHostOf(cidr, ip)) yield ip;
  }
}

/** Not the first address of a network (its name, or the routers' anycast), nor IPv4's last one (broadcast). */
function isHostOf(cidr: Cidr, ip: IpAddress): boolean {
  const { base, size, bits } = boundsOf(cidr);
  if (size <= 2n) return true;
  const offset = numberOf(ip) - base;
  return offset > 0n && (bits === 128 || offset < size - 1n);
}

function boundsOf(cidr: Cidr): { readonly base: bigint; readonly size: bigint; readonly bits: 32 | 128 } {
  const bits = cidrFamilyOf(cidr) === 'IPv4' ? 32 : 128;
  const base = numberOf(parseIp(cidr.slice(0, cidr.indexOf('/'))));
  return { base, size: 1n << BigInt(bits - cidrLength(cidr)), bits };
}

function numberOf(ip: IpAddress): bigint {
  return ipToBytes(ip).reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}

function addressOf(number: bigint, bits: 32 | 128): IpAddress {
  const count = bits === 32 ? 4 : 8;
  const width = BigInt(bits / count);
  const groups = Array.from({ length: count }, (_, index) =>
    Number((number >> (BigInt(count - 1 - index) * width)) & ((1n << width) - 1n)),
  );
  return parseIp(bits === 32 ? groups.join('.') : groups.map((group) => group.toString(16)).join(':'));
}

function compareTexts(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
