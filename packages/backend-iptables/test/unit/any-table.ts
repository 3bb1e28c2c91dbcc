import type { ForwardingTable } from '@switchyard/core';
import { situation, type SituationSpec } from '@switchyard/core/testing';
import fc from 'fast-check';

const policy = fc.constantFrom('Cluster', 'Local');

const endpoint = fc
  .record({ node: fc.integer({ min: 1, max: 2 }), index: fc.nat(3) })
  .map(({ node, index }) => ({ ip: `10.244.${node}.${index}`, node: `n${node}` }));

/** Services request the same few addresses, so that they lose them to each other. */
const service: fc.Arbitrary<SituationSpec> = fc.record({
  clusterIps: fc.nat(4).map((index) => [`10.96.0.${index + 10}`]),
  ports: fc.constantFrom(
    [{ port: 80 }],
    [{ port: 80, nodePort: 30_080 }],
    [{ name: 'web', port: 80, nodePort: 30_081 }],
  ),
  loadBalancerIps: fc.subarray(['198.51.100.7', '198.51.100.8', ['198.51.100.10', 'Router'] as const]),
  externalIps: fc.subarray(['198.51.100.9']),
  sourceRanges: fc.constantFrom([], [], ['203.0.113.0/24']),
  external: policy,
  internal: policy,
  healthCheckNodePort: fc.constantFrom(31_000, 31_001),
  endpoints: fc.uniqueArray(endpoint, { maxLength: 3, selector: ({ ip }) => ip }),
});

/** Any table of up to four Services. */
export const anyTable: fc.Arbitrary<ForwardingTable> = fc
  .record({
    services: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), service, { maxKeys: 4 }),
    podCidr: fc.constantFrom('10.244.0.0/16', '10.244.0.0/16', 'none'),
    localhostNodePorts: fc.boolean(),
    routerIpMode: fc.constantFrom('asVip', 'localOnly'),
  })
  .map(({ services, ...options }) => situation(services, options));
