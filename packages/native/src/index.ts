export { NativeMissingError } from './addon.ts';
export * from './native-error.ts';
export * from './netlink-socket.ts';
export { openScratchNamespace, type ScratchNamespace } from './scratch-namespace.ts';
export * from './netlink/constants.ts';
export * from './netlink/message-writer.ts';
export * from './netlink/netlink-exchange.ts';
export * from './netlink/read-messages.ts';
export { addressChanges, type AddressWatchOptions } from './rtnetlink/addresses.ts';
export { addressFamilies, type Device, type DeviceAddress, DeviceReader } from './rtnetlink/device-reader.ts';
export { localAddresses, type LocalAddressOptions } from './rtnetlink/local-addresses.ts';
export { trimMemory } from './addon.ts';
export * from './bpf/types.ts';
export type { BpfAddon } from './bpf/bpf-addon.ts';
export { createMap, openMapById, openPinnedMap } from './bpf/open-map.ts';
export { BpfLoadFailure, loadBpfBytes, loadBpfObject } from './bpf/load-object.ts';
export { openProgramById, programInfo } from './bpf/kernel-program.ts';
export type { BpfLinkInfo, BpfProgramInfo } from './bpf/info.ts';
export { linkInfo, openPinnedLink } from './bpf/kernel-link.ts';
export { type CgroupQueryOptions, linkCgroup, queryCgroup } from './bpf/cgroup-links.ts';
export type { AttachedProgram } from './bpf/query.ts';
export { listPins, pin, type PinOptions, unpin } from './bpf/pins.ts';
export { possibleCpus } from './bpf/kernel-map.ts';
export {
  attachTc,
  queryTcx,
  type TcDirection,
  type TcLink,
  type TcMechanism,
  type TcOptions,
  type TcPlace,
} from './bpf/clsact.ts';
export { detachClsact, findClsact } from './bpf/clsact.ts';
export { testRun, type TestRunOptions, type TestRunResult } from './bpf/test-run.ts';
export { netnsCookie } from './bpf/info.ts';
export { findMount, isBpffs, isCgroup2, mountBpffs } from './bpf/mounts.ts';
export { type BpfAbility, type BpfAbilityName, type BpfProbe, hasSetRetval, probeBpf } from './bpf/probe.ts';
export { type AskerTexts, NetlinkAsker, type WriteBody } from './netlink/netlink-asker.ts';
