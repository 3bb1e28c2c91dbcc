import { ipFamilyOf } from '../ip/address.ts';
import { apiServerService } from '../records/keys.ts';
import type { ClusterStateView, TableOptions } from './build-table-types.ts';

/** Places (`ADDRESS PORT TCP`) of API servers in one IP family. */
export interface ApiServerPlaces {
  /** Where connections of this process go, or end: no frontend of another Service may capture them. */
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
