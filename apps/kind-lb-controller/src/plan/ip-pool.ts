import {
  type Cidr,
  cidrContains,
  cidrFamilyOf,
  type IpAddress,
  type IpFamily,
  ipFamilies,
  ipFamilyOf,
  type Port,
  type Protocol,
  compareTexts,
} from '@switchyard/core';
import { type LoadBalancerId, type LoadBalancerKey, loadBalancerKey } from '../spec/load-balancer-spec.ts';
import { hostsOf, isHostOf } from './cidr-hosts.ts';

/** Where the addresses of load balancers come from. */
export type AddressSource =
  /** The load-balancer host's own addresses, at most one per family: Services share them on different ports. */
  | { readonly kind: 'shared'; readonly addresses: readonly IpAddress[] }
  /** Every Service gets addresses of its own. */
  | {
      readonly kind: 'pool';
      readonly cidrs: readonly Cidr[];
      /** Addresses in use by others, never granted. Absent: none. */
      readonly reserved?: readonly IpAddress[];
      /** Load balancers of all clusters that draw from this pool, other controllers' included. Absent: no other controller uses it. */
      readonly held?: readonly HeldAddresses[];
    };

/** A load balancer and its addresses, as a runtime lists them. */
export interface HeldAddresses {
  readonly id: LoadBalancerId;
  readonly addresses: readonly IpAddress[];
}

/** One Service that wants addresses. */
export interface AddressRequest {
  readonly id: LoadBalancerId;
  /** Older Services come first; equal ages are ordered by cluster and key. */
  readonly createdAt: string;
  readonly ipFamilies: readonly IpFamily[];
  /** Ports that it will listen on. */
  readonly ports: readonly PortAndProtocol[];
  /** Addresses it has been given before, the most important first; kept where possible. */
  readonly held: readonly IpAddress[];
  readonly requestedIp: IpAddress | undefined;
}

/** A port of one protocol: TCP 53 and UDP 53 are two. */
export interface PortAndProtocol {
  readonly port: Port;
  readonly protocol: Protocol;
}

/** A port that another Service has on the same address. */
export interface PortConflict extends PortAndProtocol {
  readonly address: IpAddress;
  readonly heldBy: LoadBalancerId;
}

/** A family of which there is no address to give. */
export interface MissingFamily {
  readonly ipFamily: IpFamily;
  /** `notOffered`: the source has none of the family. `exhausted`: others have them all. */
  readonly reason: 'notOffered' | 'exhausted';
}

/** Reason why a requested address is not granted. */
export type RefusedIp =
  /** Not of the source, which has these: CIDRs of a pool, or addresses. */
  | { readonly reason: 'outside'; readonly offered: readonly string[] }
  /** The first address of a network, or its broadcast address. */
  | { readonly reason: 'notForHosts' }
  /** Another host on the network has it. */
  | { readonly reason: 'reserved' }
  | { readonly reason: 'heldBy'; readonly holder: LoadBalancerId }
  /** The Service has no address of this family. */
  | { readonly reason: 'otherFamily' };

/** Addresses granted to one Service. */
export interface AddressGrant {
  readonly id: LoadBalancerId;
  /** At most one per family, IPv4 first. Empty when there is none to have. */
  readonly addresses: readonly IpAddress[];
  /** Families the Service has and we could give no address of. */
  readonly missing: readonly MissingFamily[];
  /** Ports that must not be listened on. Only where addresses are shared. */
  readonly conflicts: readonly PortConflict[];
  /** Undefined when the request was granted or there was none. Otherwise the Service has another address, or none. */
  readonly refused: RefusedIp | undefined;
}

/** Addresses of load balancers without a request: those being removed, and unknown ones. */
export type Holders = ReadonlyMap<IpAddress, LoadBalancerId>;

/**
 * Addresses for all Services at once. Depends on its input only, not on the order of requests: the older Service wins, and from
 * a pool each Service gets its requested address if that is free, else keeps its held one, else gets the lowest free
 * address. An address is free when no load balancer holds it. After a move, the old address is held until it is released.
 */
export function assignAddresses(
  requests: readonly AddressRequest[],
  source: AddressSource,
  holders: Holders = new Map(),
): ReadonlyMap<LoadBalancerKey, AddressGrant> {
  const byAge = [...requests].sort(
    (a, b) => compareTexts(a.createdAt, b.createdAt) || compareTexts(loadBalancerKey(a.id), loadBalancerKey(b.id)),
  );
  const grants =
    source.kind === 'shared' ? shareAddresses(byAge, source.addresses) : drawFromPool(byAge, new Pool(source, holders));
  return new Map(grants.map((grant) => [loadBalancerKey(grant.id), grant]));
}

function shareAddresses(requests: readonly AddressRequest[], shared: readonly IpAddress[]): readonly AddressGrant[] {
  const holders = new Map<string, LoadBalancerId>();
  return requests.map((request) => {
    const addresses = perFamily(request, (family) => shared.find((ip) => ipFamilyOf(ip) === family));
    const conflicts: PortConflict[] = [];
    for (const address of addresses) {
      for (const { port, protocol } of request.ports) {
        const place = `${address} ${port}/${protocol}`;
        const heldBy = holders.get(place);
        if (heldBy === undefined) holders.set(place, request.id);
        else conflicts.push({ address, port, protocol, heldBy });
      }
    }
    const isGiven = request.requestedIp === undefined || addresses.includes(request.requestedIp);
    return {
      id: request.id,
      addresses,
      missing: missingOf(request, addresses, shared.map(ipFamilyOf)),
      conflicts,
      refused: isGiven ? undefined : { reason: 'outside', offered: shared },
    };
  });
}

type PoolSource = Extract<AddressSource, { readonly kind: 'pool' }>;

function drawFromPool(requests: readonly AddressRequest[], pool: Pool): readonly AddressGrant[] {
  for (const { held, id } of requests) pool.claim(held, id);
  // Two rounds: a Service that accepts any address must not take one that another holds or requests.
  const preferred = requests.map((one) =>
    perFamily(one, (family) => pool.take([one.requestedIp, ...one.held].filter(isOfFamily(family)), one.id)),
  );
  return requests.map((one, index) => {
    const addresses = perFamily(
      one,
      (family) => preferred[index]?.find(isOfFamily(family)) ?? pool.takeLowest(family, one.id),
    );
    return {
      id: one.id,
      addresses,
      missing: missingOf(one, addresses, pool.families),
      conflicts: [],
      refused: refusalOf(one, addresses, pool),
    };
  });
}

function refusalOf(
  { id, requestedIp: ip, ipFamilies: wanted }: AddressRequest,
  addresses: readonly IpAddress[],
  pool: Pool,
): RefusedIp | undefined {
  if (ip === undefined || addresses.includes(ip)) return undefined;
  return wanted.includes(ipFamilyOf(ip)) ? pool.refusal(ip, id) : { reason: 'otherFamily' };
}

/** Who has which address of a pool. Lives for one assignment. */
class Pool {
  readonly #cidrs: readonly Cidr[];
  readonly #reserved: ReadonlySet<IpAddress>;
  /** Who holds, or has been given, an address. */
  readonly #holders: Map<IpAddress, LoadBalancerId>;

  constructor({ cidrs, reserved = [] }: PoolSource, holders: Holders) {
    this.#cidrs = cidrs;
    this.#reserved = new Set(reserved);
    this.#holders = new Map(holders);
  }

  get families(): readonly IpFamily[] {
    return this.#cidrs.map(cidrFamilyOf);
  }

  /** Reserves addresses for a load balancer; earlier claims win. */
  claim(held: readonly IpAddress[], by: LoadBalancerId): void {
    for (const ip of held) if (!this.#holders.has(ip)) this.#holders.set(ip, by);
  }

  /** The first candidate that is free. */
  take(candidates: readonly IpAddress[], by: LoadBalancerId): IpAddress | undefined {
    const ip = candidates.find((candidate) => this.refusal(candidate, by) === undefined);
    if (ip !== undefined) this.#holders.set(ip, by);
    return ip;
  }

  takeLowest(family: IpFamily, by: LoadBalancerId): IpAddress | undefined {
    for (const cidr of this.#cidrs.filter((one) => cidrFamilyOf(one) === family)) {
      for (const ip of hostsOf(cidr)) if (this.take([ip], by) !== undefined) return ip;
    }
    return undefined;
  }

  /** Why a load balancer cannot have an address now; undefined: it can. */
  refusal(ip: IpAddress, by: LoadBalancerId): RefusedIp | undefined {
    const around = this.#cidrs.filter((cidr) => cidrContains(cidr, ip));
    if (around.length === 0) return { reason: 'outside', offered: this.#cidrs };
    if (!around.some((cidr) => isHostOf(cidr, ip))) return { reason: 'notForHosts' };
    if (this.#reserved.has(ip)) return { reason: 'reserved' };
    const holder = this.#holders.get(ip) ?? by;
    return loadBalancerKey(holder) === loadBalancerKey(by) ? undefined : { reason: 'heldBy', holder };
  }
}

function perFamily(
  { ipFamilies: wanted }: AddressRequest,
  find: (family: IpFamily) => IpAddress | undefined,
): readonly IpAddress[] {
  return ipFamilies.filter((family) => wanted.includes(family)).flatMap((family) => find(family) ?? []);
}

function isOfFamily(family: IpFamily): (ip: IpAddress | undefined) => ip is IpAddress {
  return (ip): ip is IpAddress => ip !== undefined && ipFamilyOf(ip) === family;
}

function missingOf(
  { ipFamilies: wanted }: AddressRequest,
  addresses: readonly IpAddress[],
  offered: readonly IpFamily[],
): readonly MissingFamily[] {
  return ipFamilies
    .filter((family) => wanted.includes(family) && !addresses.some(isOfFamily(family)))
    .map((ipFamily) => ({ ipFamily, reason: offered.includes(ipFamily) ? 'exhausted' : 'notOffered' }));
}
