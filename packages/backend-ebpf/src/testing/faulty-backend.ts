import { openFaultyBackend as openFaultyRules, type TransportFaults } from '@switchyard/backend-nftables/testing';
import type { DataplaneBackend } from '@switchyard/core/engine';
import type { IpFamily } from '@switchyard/core';
import type { BpfMap } from '@switchyard/native';
import type { EbpfHost } from '../kernel/host.ts';
import type { EbpfKernel, MapSet } from '../kernel/kernel.ts';
import { LinuxKernel } from '../kernel/programs/linux-kernel.ts';
import { openEbpfBackend, ruleTableNames } from '../open-backend.ts';
import { cgroupOf } from '../kernel/probe.ts';
import { FaultyMap, type MapFaults } from './faulty-map.ts';

/** Faults between a backend and a real kernel; may be changed while the backend is open. */
export interface BackendFaults {
  readonly maps: MapFaults;
  readonly rules: TransportFaults;
}

/** The backend over the real kernel, with faults in between: of maps, and of what its library writes. */
export function openFaultyBackend(
  host: EbpfHost,
  ipFamily: IpFamily,
  faults: BackendFaults,
  signal: AbortSignal,
): Promise<DataplaneBackend> {
  const { bpffs, socketLb, logger } = host;
  const kernel = new LinuxKernel({ ipFamily, cgroup: () => cgroupOf(host), bpffs, socketLb, logger });
  return openEbpfBackend(host, ipFamily, signal, {
    kernel: withMapFaults(kernel, faults.maps),
    rules: openFaultyRules({ ...host, tableNames: ruleTableNames }, ipFamily, faults.rules),
  });
}

/** A kernel whose maps fail as `faults` say; all else is its own. */
export function withMapFaults(kernel: EbpfKernel, faults: MapFaults): EbpfKernel {
  const known = new WeakMap<MapSet, MapSet>();
  const faulty = (maps: MapSet): MapSet => {
    const found = known.get(maps) ?? faultyMaps(maps, faults);
    known.set(maps, found); // callers compare sets by identity
    return found;
  };
  const overrides: Partial<EbpfKernel> = {
    openMaps: async (sizes, signal) => {
      const opened = await kernel.openMaps(sizes, signal);
      return { ...opened, maps: faulty(opened.maps) };
    },
    findMaps: async (signal) => {
      const found = await kernel.findMaps(signal);
      return found && faulty(found);
    },
    growMaps: async (sizes, signal) => faulty(await kernel.growMaps(sizes, signal)),
  };
  return overlaid(kernel, overrides);
}

function faultyMaps(maps: MapSet, faults: MapFaults): MapSet {
  const entries = Object.entries(maps).map(([name, map]: [string, BpfMap]) => {
    const faulty = new FaultyMap(map, faults);
    const { update, updateBatch, delete: remove } = FaultyMap.prototype;
    const writes = {
      update: update.bind(faulty),
      updateBatch: updateBatch.bind(faulty),
      delete: remove.bind(faulty),
    };
    return [name, overlaid(map, writes)] as const;
  });
  return Object.fromEntries(entries) as unknown as MapSet; // the same names
}

/** Proxy that replaces some methods of an object; the rest, such as descriptors for a loader of programs, stays. */
function overlaid<T extends object>(one: T, overrides: Partial<T>): T {
  return new Proxy(one, {
    get: (target, name) => {
      const own: unknown = Reflect.get(overrides, name);
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
