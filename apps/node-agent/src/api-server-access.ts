// The part of core's API client that the agent uses. A dynamic import of the whole room would keep the rest of it in the bundle.
export {
  anonymousConnection,
  ApiEventRecorder,
  ApiServerAddresses,
  type ApiServerConnection,
  controllerEventPolicy,
  defaultTimings,
  inClusterConnection,
  kubeconfigConnection,
  KubernetesSource,
  newApiClient,
  Reflector,
  runAsLeader,
  sendJson,
  SourceMetrics,
} from '@switchyard/core/kubernetes';
