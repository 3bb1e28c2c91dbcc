import type { ForwardingTable, Protocol, ServiceForwarding } from '@switchyard/core';
import { addressNumber, here, situation, type SituationSpec, there } from '@switchyard/core/testing';

/** Endpoints of each Service. */
export const endpointsPerService = 10;
/** Port of all cluster IPs. */
export const servicePort = 80;
/** Port of all endpoints. */
export const endpointPort = 8080;

/** Service in the middle of a large table. */
export interface RealService {
  /** Addresses of pods that answer. */
  readonly pods: readonly string[];
  readonly nodePort?: number;
}

/** Differences from TCP Services with unreachable endpoints. */
export interface ClusterOptions {
  readonly protocol?: Protocol;
  readonly real?: RealService;
}

/**
 * Services of one port and ten endpoints on other nodes. Service i has the cluster IP 10.96.0.0 + i. The one in the middle has
 * real endpoints, where they are given.
 */
export function clusterOf(services: number, { protocol = 'TCP', real }: ClusterOptions = {}): ForwardingTable {
  const middle = services >> 1;
  const spec = (index: number): readonly [string, SituationSpec] => {
    const isReal = index === middle && real !== undefined;
    const nowhere = Array.from({ length: endpointsPerService }, (_, at) => there(addressNumber(11, index * 16 + at)));
    const nodePort = isReal ? real.nodePort : undefined;
    return [
      `s${String(index).padStart(6, '0')}`,
      {
        clusterIps: [clusterIp(index)],
        ports: [{ protocol, port: servicePort, ...(nodePort === undefined ? {} : { nodePort }) }],
        endpoints: isReal ? real.pods.map(here) : nowhere,
      },
    ];
  };
  return situation(Object.fromEntries(Array.from({ length: services }, (_, index) => spec(index))), {
    podCidr: '10.244.0.0/16',
    serviceCidrs: ['10.96.0.0/12'],
  });
}

/** The cluster IP of a Service by its number. */
export function clusterIp(index: number): string {
  return addressNumber(10, 96 * 65_536 + index);
}

/** The same Service with one endpoint less, as after a pod was deleted. */
export function withoutLast(service: ServiceForwarding): ServiceForwarding {
  const { Cluster: cluster, Local: local } = service.endpoints;
  return {
    ...service,
    endpoints: { Cluster: cluster.slice(0, -1), Local: local },
    knownEndpoints: service.knownEndpoints.slice(0, -1),
  };
}
