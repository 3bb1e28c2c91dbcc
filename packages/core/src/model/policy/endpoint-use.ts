import * as check from '../../base/argument.ts';
import type { IpAddress } from '../ip/address.ts';
import type { EndpointRecord } from '../records/records.ts';
import type { ServiceForwarding } from '../forwarding/forwarding-table.ts';

/** Whether EndpointSlices offer an endpoint for new connections. Throws `UsageError` for no endpoint. */
export function isOffered(endpoint: Pick<EndpointRecord, 'ready' | 'terminating'>): boolean {
  check.requireFields('isOffered: endpoint', endpoint, {});
  return endpoint.ready && !endpoint.terminating;
}

/** State of an endpoint for the proxies of all nodes. */
export interface EndpointUse {
  /** Whether any node's proxy may choose it. */
  readonly isUsed: boolean;
  /** Whether its pod terminates. */
  readonly isEnding: boolean;
}

/**
 * Use of one endpoint of a Service; undefined if the Service does not have it. A ready endpoint is used. One that serves while it terminates
 * is used where there is no ready one: anywhere, or for policy Local on its node (KEP-1669). Topology is left out. Throws `UsageError` for
 * arguments of another type.
 */
export function endpointUse(
  service: Pick<ServiceForwarding, 'knownEndpoints' | 'policies'>,
  place: { readonly address: IpAddress; readonly port: number },
): EndpointUse | undefined {
  check.requireFields('endpointUse: service', service, {
    knownEndpoints: check.requireList,
    policies: check.objectArgument,
  });
  check.requireFields('endpointUse: place', place, {});
  const { knownEndpoints, policies } = service;
  const endpoint = knownEndpoints.find(({ address, port }) => address === place.address && port === place.port);
  if (endpoint === undefined) return undefined;
  const { ready, serving, terminating, nodeName } = endpoint;
  if (ready || !serving) return { isUsed: ready, isEnding: terminating };
  const others = knownEndpoints.filter((one) => one.ready);
  const isLocal = policies.internal === 'Local' || policies.external === 'Local';
  const isFallback = others.length === 0 || (isLocal && !others.some((one) => one.nodeName === nodeName));
  return { isUsed: isFallback, isEnding: terminating };
}
