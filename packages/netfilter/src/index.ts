export { countPodFlows, type TrackedPod } from './conntrack/pod-flows.ts';
export { type DroppingRule, openRuleTrace, type RuleTrace, type TracedTraffic } from './nftables/rule-trace.ts';
export { createFlowTable, type FlowQuery, type FlowTable, type FlowTableOptions } from './conntrack/flow-table.ts';
export type { TrackedFlow } from './conntrack/flow-reader.ts';
export {
  createPacketCounters,
  type PacketCount,
  type PacketCounterOptions,
  type PacketCounters,
} from './nfacct/packet-counters.ts';
export { OwnChanges, openOwnSocket, ownChanges } from './nftables/own-changes.ts';
export {
  type BaseChain,
  deleteTable,
  firstErrno,
  listBaseChains,
  listChains,
  listTables,
  type TablePlace,
} from './nftables/tables.ts';
export { type ChosenPlace, openProxyChoices, type ProxyChoices, type ReadChoices } from './kube-proxy/read-choices.ts';
export * from './nftables/constants.ts';
export { ForeignTransactions } from './nftables/foreign-transactions.ts';
export * from './nftables/rules-reader.ts';
export { DriftGate } from './nftables/drift-gate.ts';
export { DriftTally } from './nftables/foreign-transactions.ts';
export * from './nftables/notices.ts';
export { type TableWatchOptions, watchTables } from './nftables/watch-tables.ts';
