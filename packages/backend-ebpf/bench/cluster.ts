import type { ForwardingTable, ServiceForwarding } from '@switchyard/core';
import { addressNumber, situation, type SituationSpec, there } from '@switchyard/core/testing';

/** Services of one TCP port and some endpoints on other nodes. Service i has the cluster IP 10.0.0.0 + i. */
export function clusterOf(services: number, endpointsEach: number): ForwardingTable {
  const spec = (index: number): readonly [string, SituationSpec] => {
    const endpoints = Array.from({ length: endpointsEach }, (_, at) =>
      there(addressNumber(11, index * endpointsEach + at)),
    );
    return [`s${index}`, { clusterIps: [addressNumber(10, index)], endpoints }];
  };
  return situation(Object.fromEntries(Array.from({ length: services }, (_, index) => spec(index))));
}

/** The same Service with one endpoint less. */
export function withoutLast(service: ServiceForwarding): ServiceForwarding {
  const endpoints = { ...service.endpoints, Cluster: service.endpoints.Cluster.slice(0, -1) };
  return { ...service, endpoints, knownEndpoints: service.knownEndpoints.slice(0, -1) };
}
