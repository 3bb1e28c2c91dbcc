import { compareIps, ipFamilyOf } from '../ip/address.ts';
import type { Protocol } from '../ip/port.ts';
import { apiServerService, type ServiceKey, type ServicePortKey } from '../records/keys.ts';
import type {
  Frontend,
  LostFrontend,
  RoutedPlace,
  ServiceForwarding,
  ClusterStateView,
  TableOptions,
} from './forwarding-table.ts';
import { compareTexts } from '../../base/values.ts';

/** Claim of one Service port, or of the API server, to an address and port. */
interface Claim {
  readonly rank: number;
  readonly key: ServicePortKey | 'apiServer';
  /** Absent for the API server. */
  readonly service?: ServiceKey;
}

/** Lower wins. The API server allocates cluster IPs; any user may set external IPs. */
const ranks: Readonly<Record<Frontend['kind'] | 'toApiServer' | 'apiServer', number>> = {
  clusterIP: 0,
  /** A frontend of any other kind, at an address of the API server, that leads to API servers. */
  toApiServer: 1,
  apiServer: 2,
  loadBalancerIP: 3,
  externalIP: 4,
  nodePort: 5,
};

/**
 * Claims to addresses, ports and protocols, so that a table never has the same one twice and
 * the winner does not depend on the order of arrival. Mutable; belongs to the newest table of a line.
 */
export class FrontendClaims {
  /** The API server keeps places unique, so nearly all have one claim and need no array. */
  readonly #claims = new Map<string, Claim | readonly Claim[]>();
  readonly #apiServers: ApiServerPlaces;

  constructor(apiServers: ApiServerPlaces) {
    this.#apiServers = apiServers;
    for (const place of apiServers.reached) this.#claims.set(place, { rank: ranks.apiServer, key: 'apiServer' });
  }

  /** Whether the claims are those of these API servers. */
  isOf({ reached, endpoints }: ApiServerPlaces): boolean {
    const own = this.#apiServers;
    return areSame(own.reached, reached) && areSame(own.endpoints, endpoints);
  }

  /** Adds every place of a service, held, lost or left to the route. Returns Services for which the winner of one changes. */
  add(service: ServiceForwarding): readonly ServiceKey[] {
    const affected: ServiceKey[] = [];
    for (const frontend of allPlaces(service)) {
      const place = placeOf(frontend, service.protocol);
      const claim = { rank: this.#rankOf(frontend, place, service), key: service.key, service: service.service };
      const there = this.#claims.get(place);
      if (there === undefined) this.#claims.set(place, claim);
      else {
        const claims = [...asArray(there), claim].sort(compareClaims);
        this.#claims.set(place, claims);
        if (claims[0] === claim) affected.push(...servicesOf(claims));
      }
    }
    return affected;
  }

  /** Removes what `add` added. Returns Services for which the winner of a place changes. */
  remove(service: ServiceForwarding): readonly ServiceKey[] {
    const affected: ServiceKey[] = [];
    for (const frontend of allPlaces(service)) {
      const place = placeOf(frontend, service.protocol);
      const claims = asArray(this.#claims.get(place));
      const rest = claims.filter((claim) => claim.key !== service.key);
      const [first] = rest;
      if (first === undefined) this.#claims.delete(place);
      else {
        this.#claims.set(place, rest.length === 1 ? first : rest);
        if (first !== claims[0]) affected.push(...servicesOf(rest));
      }
    }
    return affected;
  }

  /** An address of the API server may be captured by a Service that leads to API servers, and by cluster IPs. */
  #rankOf({ kind }: RoutedPlace, place: string, { endpoints }: ServiceForwarding): number {
    if (kind === 'clusterIP' || !this.#apiServers.reached.has(place)) return ranks[kind];
    const all = [...endpoints.Cluster, ...endpoints.Local];
    const leadsThere = all.every(({ address, port }) => this.#apiServers.endpoints.has(`${address} ${port} TCP`));
    return all.length > 0 && leadsThere ? ranks.toApiServer : ranks[kind];
  }

  /** Returns `service` with the frontends that it won; the same object if it won all and lost none before. */
  settle(service: ServiceForwarding): ServiceForwarding {
    const frontends: Frontend[] = [];
    const lostFrontends: LostFrontend[] = [];
    for (const frontend of allFrontends(service)) {
      const [winner] = asArray(this.#claims.get(placeOf(frontend, service.protocol)));
      if (winner === undefined || winner.key === service.key) frontends.push(frontend);
      else lostFrontends.push({ frontend, winner: winner.key });
    }
    if (lostFrontends.length === 0 && service.lostFrontends.length === 0) return service;
    return {
      ...service,
      frontends: frontends.sort(compareFrontends),
      lostFrontends: lostFrontends.sort((a, b) => compareFrontends(a.frontend, b.frontend)),
    };
  }
}

function areSame(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a === b || (a.size === b.size && a.isSubsetOf(b));
}

function servicesOf(claims: readonly Claim[]): readonly ServiceKey[] {
  return claims.flatMap(({ service }) => service ?? []);
}

/** Order of `ServiceForwarding.frontends`. */
function compareFrontends(a: Frontend, b: Frontend): number {
  if (a.kind !== b.kind) return ranks[a.kind] - ranks[b.kind];
  if (a.address === 'anyNodePortAddress' || b.address === 'anyNodePortAddress') return 0;
  return compareIps(a.address, b.address);
}

function* allFrontends(service: ServiceForwarding): Generator<Frontend, undefined, unknown> {
  yield* service.frontends;
  for (const lost of service.lostFrontends) yield lost.frontend;
  return undefined;
}

/** A place that is left to the route keeps its claim, so no other Service captures its packets. */
function* allPlaces(service: ServiceForwarding): Generator<RoutedPlace, undefined, unknown> {
  yield* allFrontends(service);
  if (service.leftToRoute !== undefined) yield* service.leftToRoute;
  return undefined;
}

function placeOf(frontend: RoutedPlace, protocol: Protocol): string {
  return `${frontend.address} ${frontend.port} ${protocol}`;
}

function compareClaims(a: Claim, b: Claim): number {
  return a.rank - b.rank || compareTexts(a.key, b.key);
}

function asArray(claims: Claim | readonly Claim[] | undefined): readonly Claim[] {
  if (claims === undefined) return [];
  return 'rank' in claims ? [claims] : claims;
}

/** Places (`ADDRESS PORT TCP`) of API servers in one IP family. */
interface ApiServerPlaces {
  /** Destinations of connections of this process: no frontend of another Service may capture them. */
  readonly reached: ReadonlySet<string>;
  /** Endpoints of `default/kubernetes`: a Service with no others leads to API servers. */
  readonly endpoints: ReadonlySet<string>;
}

/**
 * API servers as the options and the Service `default/kubernetes` name them. If this process connects to that Service's
 * cluster IP, its endpoints count as reached, too.
 */
export function apiServerPlaces(
  state: ClusterStateView,
  { apiServers = [], ipFamily }: Pick<TableOptions, 'apiServers' | 'ipFamily'>,
): ApiServerPlaces {
  const own = apiServers.filter(({ address }) => ipFamilyOf(address) === ipFamily);
  if (own.length === 0) return none;
  const service = state.services.get(apiServerService);
  const endpoints = new Set<string>();
  for (const slice of state.slicesOf(apiServerService)) {
    for (const { port, protocol } of slice.ports) {
      for (const { address } of slice.endpoints) endpoints.add(`${address} ${port} ${protocol}`);
    }
  }
  const reached = new Set(own.map(({ address, port }) => `${address} ${port} TCP`));
  const isByService = own.some(({ address }) => service?.clusterIps.includes(address) === true);
  return { reached: isByService ? reached.union(endpoints) : reached, endpoints };
}

const none: ApiServerPlaces = { reached: new Set(), endpoints: new Set() };
