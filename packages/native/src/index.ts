export { NativeMissingError } from './addon.ts';
export * from './native-error.ts';
export * from './netlink-socket.ts';
export { openScratchNamespace, type ScratchNamespace } from './scratch-namespace.ts';
export { createFlowTable, type FlowQuery, type FlowTable, type FlowTableOptions } from './conntrack/flow-table.ts';
export type { TrackedFlow } from './conntrack/flow-reader.ts';
export * from './netlink/constants.ts';
export * from './netlink/message-writer.ts';
export * from './netlink/read-messages.ts';
export { addressChanges, type AddressWatchOptions } from './addresses.ts';
export { addressFamilies, type Device, type DeviceAddress, DeviceReader } from './device-reader.ts';
export { localAddresses, type LocalAddressOptions } from './local-addresses.ts';
export { trimMemory } from './trim-memory.ts';
export {
  createPacketCounters,
  type PacketCount,
  type PacketCounterOptions,
  type PacketCounters,
} from './nfacct/packet-counters.ts';
export { OwnChanges, openOwnSocket, ownChanges } from './nftables/own-changes.ts';
export { deleteTable, listChains, listTables, type TableFamily, type TablePlace } from './nftables/tables.ts';
export { DriftReport } from './nftables/drift-report.ts';
export { DriftTally } from './nftables/drift-tally.ts';
export * from './nftables/notices.ts';
export { type TableWatchOptions, watchTables } from './nftables/watch-tables.ts';
export * from './bpf/types.ts';
export type { BpfAddon } from './bpf/bpf-addon.ts';
export type { TcDirection } from './bpf/attach-types.ts';
export { BpfLoadFailure } from './bpf/load-failure.ts';
export { BpfBatchError } from './bpf/map-batches.ts';
export { createMap, openMapById, openPinnedMap } from './bpf/open-map.ts';
export { loadBpfBytes, loadBpfObject } from './bpf/load-object.ts';
export { openPinnedProgram, openProgramById, programInfo } from './bpf/kernel-program.ts';
export type { BpfLinkInfo, BpfProgramInfo } from './bpf/info.ts';
export { linkInfo, openLinkById, openPinnedLink } from './bpf/kernel-link.ts';
export { type CgroupQueryOptions, linkCgroup, queryCgroup } from './bpf/cgroup-links.ts';
export type { AttachedProgram } from './bpf/query.ts';
export { listPins, pin, type PinOptions, unpin } from './bpf/pins.ts';
export { possibleCpus } from './bpf/possible-cpus.ts';
export { attachTc, queryTcx, type TcLink, type TcMechanism, type TcOptions, type TcPlace } from './bpf/tc-links.ts';
export { detachClsact, findClsact } from './bpf/clsact.ts';
export { testRun, type TestRunOptions, type TestRunResult } from './bpf/test-run.ts';
export { type IteratorOptions, runIterator } from './bpf/iterators.ts';
export { enableRunStats } from './bpf/run-statistics.ts';
export { interfaceIndex, netnsCookie } from './bpf/namespaces.ts';
export { findMount, isBpffs, isCgroup2, mountBpffs } from './bpf/mounts.ts';
export { type BpfAbility, type BpfAbilityName, type BpfProbe, hasSetRetval, probeBpf } from './bpf/probe.ts';
export { type AskerTexts, NetlinkAsker, type WriteBody } from './netlink/netlink-asker.ts';
