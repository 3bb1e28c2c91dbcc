export {
  type CheckingClient,
  type ConnectionsReply,
  connectionsPath,
  type NodeQuestion,
  type NodeReply,
  nodePath,
  parseNodeQuery,
  type PodUse,
  type ServedPod,
} from './protocol.ts';
export type { DrainAnswer } from './drain.ts';
export { type DrainGateOptions, runDrainGate } from './run-drain-gate.ts';
