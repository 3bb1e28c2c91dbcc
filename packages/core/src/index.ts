// Ordered by subject, as a reader of the package meets them.

// Addresses, ports and names: texts become values here, and only here.
export {
  compareIps,
  type IpAddress,
  ipFamilies,
  type IpFamily,
  ipFamilyOf,
  ipFromBytes,
  ipToBytes,
  type Ipv4,
  type Ipv6,
  ipv4Text,
  ipv6Text,
  mappedBytes,
  parseIp,
  tryParseIp,
  withoutLeadingZeros,
} from './model/ip/address.ts';
export {
  type Cidr,
  cidrContains,
  cidrFamilyOf,
  cidrLength,
  cidrsOverlap,
  everythingOf,
  hostCidr,
  isEverything,
  loopbackAddress,
  loopbackOf,
  parseCidr,
  tryParseCidr,
} from './model/ip/cidr.ts';
export * from './model/ip/interface-name.ts';
export {
  addressAndPort,
  parsePort,
  type Port,
  type Protocol,
  tryParsePort,
  tryParseProtocol,
} from './model/ip/port.ts';
export {
  type NodeName,
  nodeName,
  type ServiceKey,
  serviceKey,
  type ServicePortKey,
  servicePortKey,
  type ServicePortParts,
  servicePortParts,
  type SliceKey,
  sliceKey,
} from './model/records/keys.ts';

// Records: validated copies of API objects.
export type * from './model/records/records.ts';

// State: events in, records out.
export * from './model/state/cluster-event.ts';
export { ClusterState, type Dirty, dirtyServices, EndpointIndex } from './model/state/cluster-state.ts';

// The forwarding table: what a node must do.
export { buildTable, diffTables, sorted } from './model/forwarding/build-table.ts';
export * from './model/forwarding/forwarding-table.ts';

// Parts of its policy, for those who decide for less than a whole table.
export {
  allowedSources,
  type NodePlace,
  routerDecisions,
  selectEndpoints,
  type SelectionContext,
  type SourceRangesInput,
} from './model/policy/decide.ts';
export { type EndpointUse, endpointUse, isOffered } from './model/policy/endpoint-use.ts';
export { mergeEndpoints } from './model/forwarding/build-service.ts';
export { loopbackNodePort, type LoopbackNodePort } from './model/forwarding/loopback-node-port.ts';

// Explanation of a packet.
export { explain } from './model/forwarding/explain.ts';
export * from './model/forwarding/explain-types.ts';
export { isSentBySocket, isServedBySocket, sourceClassOf } from './model/forwarding/source-class.ts';
export type { DataplaneTraits, MetricSet } from './model/forwarding/dataplane-traits.ts';

// Errors.
export * from './base/errors.ts';

// Parts that programs around the model share: time, waiting, log, events, metrics, values.
export { abortable, aborted, runTogether, within } from './base/abortable.ts';
export { type BackOff, type BackOffBounds, newBackOff } from './base/back-off.ts';
export type { Branded } from './base/brand.ts';
export { compareTexts, isEqual } from './base/values.ts';
export * from './base/log.ts';
export { assertNever } from './base/argument.ts';
export * from './base/sorted-map.ts';
export * from './base/time.ts';
export * from './metrics/kube-proxy-metrics.ts';
export * from './metrics/metrics.ts';
export * from './metrics/own-metrics.ts';
