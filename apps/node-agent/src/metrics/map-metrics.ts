import type { DataplaneBackend } from '@switchyard/core/engine';
import { collectedFamily, type MetricFamily } from '@switchyard/host';
import type { Collector } from './metrics-page.ts';

/** Capacity and entries of the maps of the eBPF mode. */
export function mapMetrics(backends: readonly DataplaneBackend[]): Collector {
  return () => [
    family('switchyard_ebpf_map_capacity', backends, 'capacity'),
    family('switchyard_ebpf_map_entries', backends, 'entries'),
  ];
}

function family(
  name: 'switchyard_ebpf_map_capacity' | 'switchyard_ebpf_map_entries',
  backends: readonly DataplaneBackend[],
  what: 'capacity' | 'entries',
): MetricFamily {
  return collectedFamily(
    name,
    backends.flatMap((backend) =>
      (backend.observers.mapFills?.() ?? []).map((fill) => [fill[what], backend.ipFamily, fill.map] as const),
    ),
  );
}
