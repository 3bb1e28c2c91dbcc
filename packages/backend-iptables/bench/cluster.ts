import { type ForwardingTable, parseIp, type ServiceForwarding } from '@switchyard/core';
import { service, slice, tableOf, tableOptions } from '@switchyard/core/testing';

/** Endpoints of each Service. */
export const endpointsPerService = 10;
/** Cluster IP of the Service that is moved between two real pods. */
export const movedAddress = '10.96.255.1';

/**
 * Services of one port and ten endpoints on another node, whose addresses lead nowhere, and behind them one Service with a
 * single endpoint, which is real.
 */
export function clusterOf(services: number, realPod: string): ForwardingTable {
  const keys = Array.from({ length: services }, (_, index) => `bench/service-${index}`);
  const ports = [{ name: 'http', port: 80 }];
  const slicePorts = [{ name: 'http', port: 8080 }];
  return tableOf(
    {
      services: [
        ...keys.map((key, index) => service(key, { clusterIps: [addressNumber(10, 96 * 65_536 + index + 1)], ports })),
        service(movedKey, { clusterIps: [movedAddress], ports }),
      ],
      slices: [
        ...keys.map((key, index) =>
          slice(key, {
            ports: slicePorts,
            endpoints: Array.from({ length: endpointsPerService }, (_, at) => ({
              ip: addressNumber(11, index * 16 + at + 1),
              node: 'n2',
            })),
          }),
        ),
        slice(movedKey, { ports: slicePorts, endpoints: [{ ip: realPod, node: 'n1' }] }),
      ],
    },
    tableOptions(),
  );
}

const movedKey = 'bench/zz-moved';

/** Address number `index` of those that begin with `first`. */
function addressNumber(first: number, index: number): string {
  return `${first}.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
}

/** The Service that is moved, with its endpoint there. */
export function movedTo(table: ForwardingTable, realPod: string): ServiceForwarding {
  const moved = [...table.services.values()].find((one) => one.service === movedKey);
  if (moved === undefined) throw new Error(`${movedKey} is not in the table`);
  const endpoints = moved.endpoints.Cluster.map((endpoint) => ({ ...endpoint, address: parseIp(realPod) }));
  return { ...moved, endpoints: { ...moved.endpoints, Cluster: endpoints } };
}

/** The same Service with one endpoint less. */
export function withoutLast(one: ServiceForwarding): ServiceForwarding {
  return { ...one, endpoints: { ...one.endpoints, Cluster: one.endpoints.Cluster.slice(0, -1) } };
}

/** The table with another version of a Service. */
export function withService(table: ForwardingTable, one: ServiceForwarding): ForwardingTable {
  return { ...table, generation: table.generation + 1, services: new Map([...table.services, [one.key, one]]) };
}
