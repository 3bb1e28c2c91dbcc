import type { ForwardingTable, Protocol, ServiceForwarding } from '@switchyard/core';
import { addressNumber, situation, type SituationSpec, there } from '@switchyard/core/testing';

/** Endpoints of each Service. */
export const endpointsPerService = 10;

/** Services of one port and ten endpoints on other nodes. Service i has the cluster IP 10.0.0.0 + i. */
export function clusterOf(services: number, protocol: Protocol = 'TCP'): ForwardingTable {
  const spec = (index: number): readonly [string, SituationSpec] => {
    const endpoints = Array.from({ length: endpointsPerService }, (_, at) => there(addressNumber(11, index * 16 + at)));
    return [`s${index}`, { clusterIps: [addressNumber(10, index)], ports: [{ protocol, port: 80 }], endpoints }];
  };
  return situation(Object.fromEntries(Array.from({ length: services }, (_, index) => spec(index))));
}

/** The same Service with one endpoint less. */
export function withoutLast(service: ServiceForwarding): ServiceForwarding {
  return { ...service, endpoints: { ...service.endpoints, Cluster: service.endpoints.Cluster.slice(0, -1) } };
}
