import { nftablesBackend } from '@switchyard/backend-nftables';
import type { DataplaneBackendFactory } from '@switchyard/core/engine';
import type { EbpfHost } from './kernel/host.ts';
import { openEbpfBackend, ruleTableNames } from './open-backend.ts';
import { probeMachine } from './kernel/probe.ts';
import { wireFaults } from './kernel/wire/wire-choice.ts';

export * from './render/layouts.ts';
export type { EbpfKernel, KernelFaults, MapSet, OpenedMaps } from './kernel/kernel.ts';
export { ServiceWriter, type IdentifiedService, type WriteResult } from './kernel/maps/service-writer.ts';
export type { GoneEndpoint } from './kernel/maps/apply-run.ts';
export type { MapStateOptions } from './kernel/maps/map-state.ts';
export { applyGrowing, type GrowingApply } from './kernel/maps/apply-growing.ts';
export { dumpMaps } from './kernel/maps/dump.ts';
export type { EbpfHost, NorthSouth, SocketLb } from './kernel/host.ts';

/** Sockets and uplinks served by BPF programs, the rest by rules of nftables. */
export const ebpfBackend: DataplaneBackendFactory<EbpfHost> = {
  name: 'ebpf',
  probe: async (host, signal) => {
    const [library, wire] = await Promise.all([
      nftablesBackend.probe({ ...host, tableNames: ruleTableNames }, signal),
      wireFaults(host, signal),
    ]);
    return probeMachine(host, { library, wire });
  },
  open: (host, ipFamily, signal) => openEbpfBackend(host, ipFamily, signal),
};
