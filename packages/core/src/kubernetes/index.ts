export {
  anonymousConnection,
  ApiServerAddresses,
  type ApiServerConnection,
  type Credentials,
  defaultTls,
  fixedCredentials,
  type TlsSettings,
} from './api-server-connection.ts';
export { KubernetesSource, type KubernetesSourceOptions, type MergeOptions } from './kubernetes-source.ts';
export { defaultTimings, type NodeScope, type ReflectorTimings, type ResourceQuery } from './resources.ts';
export {
  type IgnoredReason,
  newProjectionContext,
  type Projected,
  type Projection,
  type ProjectionContext,
  projections,
  type RawObjects,
  recordFromEndpointSlice,
  recordFromNode,
  recordFromService,
  recordFromServiceCidr,
  type SkippedPart,
} from './to-records.ts';
export { inClusterConnection, type InClusterOptions } from './credentials.ts';
export * from './kubeconfig.ts';
export {
  type ApiBody,
  type ApiClient,
  type ApiClientOptions,
  type ApiRequest,
  newApiClient,
  type RawObject,
} from './api-client.ts';
export * from './objects/object-types.ts';
export * from './objects/object-client.ts';
export * from './reflector.ts';
export * from './source-metrics.ts';
export * from './send-json.ts';
export { statusMessage } from './api-failure.ts';
export * from './leader-election/run-as-leader.ts';
export { ApiEventRecorder, type ApiEventsOptions } from './events/api-events.ts';
export type { EventReporter } from './events/event-object.ts';
export { agentEventPolicy, controllerEventPolicy, type EventPolicy, type EventRate } from './events/event-policy.ts';
