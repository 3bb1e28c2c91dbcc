export { type CauseCode, causes } from './causes/causes.ts';
export type { NodeView } from './causes/drop-subject.ts';
export { explainDrop, type Loss } from './causes/explain-drop.ts';
export { ServiceIndex } from './causes/service-index.ts';
export { type DropCounter, type NewDrops, openDropCounter, type PlacedDrop } from './kernel/drop-counter.ts';
export type { DropRecord, TrackedFlow } from './kernel/drop-records.ts';
export type { DropPlace, PacketPlace } from './kernel/kernel-functions.ts';
export { type ConntrackState, readConntrackState, type ReadFile } from './kernel/conntrack-state.ts';
export { listNamespaces, ownCookie, type ProcessNamespace } from './kernel/namespaces.ts';
export { LossReader, type LossReading, type LossSources, type ServiceView } from './loss-reader.ts';
export type { ReadCounters } from './refusal-counts.ts';
export {
  isTranslatedConnection,
  listUnansweredFlows,
  type SentPacket,
  type UnansweredFlow,
} from './kernel/tracked-flows.ts';
