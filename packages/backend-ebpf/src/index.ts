export * from './layouts.ts';
export type { EbpfKernel, KernelFaults, MapSet, OpenedMaps } from './kernel/kernel.ts';
export type { EbpfHost, NorthSouth, SocketLb } from './host.ts';
