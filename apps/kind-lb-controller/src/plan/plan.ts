import {
  assertNever,
  type IpAddress,
  ipFamilies,
  type Port,
  type Protocol,
  type ServiceKey,
  type ServicePortRecord,
  type ServiceRecord,
  tryParseIp,
} from '@switchyard/core';
import type { LoadBalancerId } from '../spec/load-balancer-spec.ts';
import { isOurs, type LoadBalancerService } from '../cluster/cluster-objects.ts';
import {
  type AddressGrant,
  type AddressSource,
  assignAddresses,
  loadBalancerKey,
  type PortConflict,
} from './ip-pool.ts';

/** One address and port to listen on for a Service port. */
export interface Bind {
  readonly address: IpAddress;
  readonly port: ServicePortRecord;
}

/** A Service with at least one address and port to listen on. */
export interface ServedService {
  readonly record: ServiceRecord;
  readonly binds: readonly Bind[];
}

/** Why a Service port, or a whole Service, is not load-balanced. */
export type Problem =
  /** HAProxy forwards TCP only. */
  | { readonly kind: 'unsupportedProtocol'; readonly port: Port; readonly protocol: Protocol }
  /** `allocateLoadBalancerNodePorts: false`: there is nothing to send to. */
  | { readonly kind: 'noNodePort'; readonly port: Port; readonly protocol: Protocol }
  | ({ readonly kind: 'portConflict' } & PortConflict)
  | { readonly kind: 'noAddress'; readonly ipFamily: 'IPv4' | 'IPv6' }
  /** `externalTrafficPolicy: Local` without a `healthCheckNodePort`: nobody can tell which node has endpoints. */
  | { readonly kind: 'noHealthCheckNodePort' };

/** What becomes of one Service. */
export interface ServicePlan {
  readonly service: LoadBalancerService;
  /** Undefined: nothing is listened on for it. */
  readonly served: ServedService | undefined;
  /** All that must be told to the Service's owner, in order of its ports. */
  readonly problems: readonly Problem[];
  /** Addresses it is given. Empty for a Service that is not ours. */
  readonly grant: readonly IpAddress[];
}

/** Decides for all Services at once, ordered by key. The order of the input does not matter. */
export function planServices(services: Iterable<LoadBalancerService>, source: AddressSource): readonly ServicePlan[] {
  const all = [...services].sort((a, b) => (a.record.key < b.record.key ? -1 : 1));
  const requests = all.filter(isOurs).map((service) => ({
    id: idOf(service.record.key),
    createdAt: service.createdAt,
    ipFamilies: service.record.ipFamilies.length > 0 ? service.record.ipFamilies : ipFamilies.slice(0, 1),
    ports: servablePorts(service.record),
    held: service.ingress.flatMap(({ ip }) => (ip === undefined ? [] : (ip as IpAddress))), // compared, never parsed
    requestedIp: tryParseIp(service.requestedIp ?? ''),
  }));
  const grants = assignAddresses(requests, source);
  return all.map((service) => planService(service, grants.get(loadBalancerKey(idOf(service.record.key)))));
}

/** What an operator reads about a problem; one sentence without a full stop. */
export function problemText(problem: Problem): string {
  switch (problem.kind) {
    case 'unsupportedProtocol':
      return `port ${problem.port}/${problem.protocol} is not load-balanced: HAProxy forwards TCP only`;
    case 'noNodePort':
      return `port ${problem.port}/${problem.protocol} is not load-balanced: it has no nodePort; set allocateLoadBalancerNodePorts to true`;
    case 'portConflict':
      return `port ${problem.port}/${problem.protocol} is not load-balanced on ${problem.address}: Service ${problem.heldBy.service} has it; use another port`;
    case 'noAddress':
      return `there is no ${problem.ipFamily} address to give`;
    case 'noHealthCheckNodePort':
      return 'externalTrafficPolicy is Local and there is no healthCheckNodePort, so no node can be checked';
    default:
      return assertNever(problem);
  }
}

function planService(service: LoadBalancerService, grant: AddressGrant | undefined): ServicePlan {
  if (grant === undefined) return { service, served: undefined, problems: [], grant: [] };
  const { record } = service;
  const isTaken = (address: IpAddress, port: Port): boolean =>
    grant.conflicts.some((conflict) => conflict.address === address && conflict.port === port);
  const binds = grant.addresses.flatMap((address) =>
    servablePorts(record)
      .filter(({ port }) => !isTaken(address, port))
      .map((port) => ({ address, port })),
  );
  return {
    service,
    served: binds.length === 0 ? undefined : { record, binds },
    problems: problemsOf(record, grant),
    grant: grant.addresses,
  };
}

function problemsOf(record: ServiceRecord, grant: AddressGrant): readonly Problem[] {
  return [
    ...(isCheckable(record) ? [] : [{ kind: 'noHealthCheckNodePort' } as const]),
    ...grant.missing.map(({ ipFamily }) => ({ kind: 'noAddress', ipFamily }) as const),
    ...record.ports.flatMap(({ port, protocol, nodePort }): readonly Problem[] => {
      if (protocol !== 'TCP') return [{ kind: 'unsupportedProtocol', port, protocol }];
      if (nodePort === undefined) return [{ kind: 'noNodePort', port, protocol }];
      return grant.conflicts
        .filter((conflict) => conflict.port === port)
        .map((conflict) => ({ kind: 'portConflict', ...conflict }));
    }),
  ];
}

function servablePorts(record: ServiceRecord): readonly ServicePortRecord[] {
  if (!isCheckable(record)) return [];
  return record.ports.filter(({ protocol, nodePort }) => protocol === 'TCP' && nodePort !== undefined);
}

function isCheckable({ externalTrafficPolicy, healthCheckNodePort }: ServiceRecord): boolean {
  return externalTrafficPolicy !== 'Local' || healthCheckNodePort !== undefined;
}

function idOf(service: ServiceKey): LoadBalancerId {
  return { cluster: '', service };
}

/** The key of a Service plan, for logs and maps. */
export function planKey({ service }: ServicePlan): ServiceKey {
  return service.record.key;
}
