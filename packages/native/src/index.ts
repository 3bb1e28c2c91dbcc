export { NativeMissingError } from './addon.ts';
export * from './native-error.ts';
export * from './netlink-socket.ts';
export { createFlowTable, type FlowQuery, type FlowTable, type FlowTableOptions } from './conntrack/flow-table.ts';
export type { TrackedFlow } from './conntrack/flow-reader.ts';
export * from './netlink/constants.ts';
export * from './netlink/message-writer.ts';
export * from './netlink/read-messages.ts';
export { addressChanges, type AddressWatchOptions } from './addresses.ts';
export { localAddresses, type LocalAddressOptions } from './local-addresses.ts';
export { trimMemory } from './trim-memory.ts';
export {
  createPacketCounters,
  type PacketCount,
  type PacketCounterOptions,
  type PacketCounters,
} from './nfacct/packet-counters.ts';
export { OwnChanges, openOwnSocket, ownChanges } from './nftables/own-changes.ts';
export { DriftReport } from './nftables/drift-report.ts';
export { DriftTally } from './nftables/drift-tally.ts';
export * from './nftables/notices.ts';
export { type TableWatchOptions, watchTables } from './nftables/watch-tables.ts';
export * from './bpf/types.ts';
