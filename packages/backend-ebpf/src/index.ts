export * from './layouts.ts';
export type { EbpfKernel, KernelFaults, MapSet, OpenedMaps } from './kernel/kernel.ts';
export { ServiceWriter, type IdentifiedService, type WriteResult } from './maps/service-writer.ts';
export type { GoneEndpoint } from './maps/apply-run.ts';
export type { MapStateOptions } from './maps/map-state.ts';
export { applyGrowing, type GrowingApply } from './maps/apply-growing.ts';
export type { EbpfHost, NorthSouth, SocketLb } from './host.ts';
export { dumpMaps } from './maps/dump.ts';
