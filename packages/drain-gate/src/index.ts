export {
  type CheckingClient,
  type ConnectionsReply,
  connectionsPath,
  type CountedPod,
  type NodeQuestion,
  type NodeReply,
  nodePath,
  type OpenConnections,
  parseConnectionsQuery,
  parseNodeQuery,
  type PodUse,
  type ServedPod,
} from './protocol.ts';
export type { DrainAnswer } from './drain.ts';
export { type DrainGateOptions, type GateView, runDrainGate } from './run-drain-gate.ts';
export { type ReadinessGateOptions, runReadinessGate, type WaitingPodEvent } from './readiness/run-readiness-gate.ts';
export { conditionType, type NodesFollow, projectPod, type WaitingPod } from './readiness/waiting-pod.ts';
