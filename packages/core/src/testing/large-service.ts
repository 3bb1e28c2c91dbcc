import type { EndpointSliceRecord, ServiceRecord } from '../model/records/records.ts';
import { service, slice } from './builders.ts';

/** Ports of a slice of a large Service; the API allows no more. */
const portsPerSlice = 100;

/** A Service `shop/large` of the cluster IP 10.96.9.9 with TCP ports `p0`, `p1`, ... from 1000 on. */
export function largeService(ports: number): ServiceRecord {
  return service('shop/large', {
    clusterIps: ['10.96.9.9'],
    ports: Array.from({ length: ports }, (_, index) => ({ name: `p${index}`, port: 1000 + index })),
  });
}

/** Its slice `index`: the 100 ports from `100 * index` on, and so many endpoints of its own. */
export function largeSlice(index: number, endpoints: number): EndpointSliceRecord {
  return slice('shop/large', {
    name: `large-${index}`,
    ports: Array.from({ length: portsPerSlice }, (_, at) => {
      const port = index * portsPerSlice + at;
      return { name: `p${port}`, port: 1000 + port };
    }),
    endpoints: Array.from({ length: endpoints }, (_, at) => ({
      ip: `10.${128 + (at >> 8)}.${index}.${at & 255}`,
      node: 'n2',
    })),
  });
}
