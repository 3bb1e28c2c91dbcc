export * from './api-server-connection.ts';
export * from './api-server-addresses.ts';
export { KubernetesSource, type KubernetesSourceOptions, type MergeOptions } from './kubernetes-source.ts';
export * from './reflector-timings.ts';
export type { NodeScope } from './resources.ts';
export {
  type IgnoredReason,
  newProjectionContext,
  type Projected,
  type ProjectionContext,
  projections,
  type RawObjects,
  recordFromEndpointSlice,
  recordFromNode,
  recordFromService,
  recordFromServiceCidr,
  type SkippedPart,
} from './to-records.ts';
export * from './in-cluster.ts';
export * from './load-kubeconfig.ts';
export {
  type ApiBody,
  type ApiClient,
  type ApiClientOptions,
  type ApiRequest,
  newApiClient,
  type RawObject,
} from './api-client.ts';
export type * from './objects/object-types.ts';
export * from './objects/object-resources.ts';
export * from './objects/object-client.ts';
export type { ApiList, ObjectEvent } from './objects/follow-objects.ts';
export * from './reflector.ts';
export type { ResourceQuery } from './resources.ts';
export * from './source-metrics.ts';
export * from './send-json.ts';
export { statusMessage } from './api-failure.ts';
export * from './leader-election/run-as-leader.ts';
export { ApiEventRecorder, type ApiEventsOptions } from './events/api-events.ts';
export type { EventRate } from './events/event-budget.ts';
export type { EventReporter } from './events/event-object.ts';
export * from './events/event-policy.ts';
