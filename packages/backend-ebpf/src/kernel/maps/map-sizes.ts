import type { ForwardingTable } from '@switchyard/core';
import { type MapSizes, mapSizes, sizeNames, smallestSizes } from '../../render/layouts.ts';

/** Maximum sizes. A Service that does not fit fails. */
export const largestSizes: MapSizes = {
  services: 1_048_576,
  endpoints: 4_194_304,
  slots: 4_194_304,
  frontends: 4_194_304,
  sourceRanges: 1_048_576,
};

/** Factor for ids and slots in quarantine, and for growth. */
const headroom = 1.25;

/** Sizes in which a table fits with room to spare, none below `smallestSizes`. Looks at every Service. */
export function neededSizes(table: ForwardingTable): MapSizes {
  const entries = { services: 1, endpoints: 1, slots: 0, frontends: 0, sourceRanges: 0 };
  for (const { protocol, frontends, endpoints, knownEndpoints } of table.services.values()) {
    const { Cluster: cluster, Local: local } = endpoints;
    if (protocol !== 'SCTP') {
      entries.services++;
      entries.endpoints += Math.min(cluster.length + local.length, knownEndpoints.length);
      entries.slots += rangeLength(cluster.length) + rangeLength(local.length);
    }
    let ranges = 0;
    for (const { kind, allowedSources } of frontends) {
      entries.frontends += kind === 'clusterIP' ? 2 : 1;
      if (allowedSources !== 'any') ranges = allowedSources.length;
    }
    entries.sourceRanges += ranges;
  }
  return boundedSizes((name) => roundedUp(entries[name] * headroom));
}

/** The next quarter between two powers of two: all of an array is memory, in the kernel and mapped. */
function roundedUp(count: number): number {
  const quarter = 2 ** Math.floor(Math.log2(Math.max(4, count)) - 2);
  return Math.ceil(count / quarter) * quarter;
}

export function largerSizes(a: MapSizes, b: MapSizes): MapSizes {
  return boundedSizes((name) => Math.max(a[name], b[name]));
}

export function isLarger(wanted: MapSizes, than: MapSizes): boolean {
  return sizeNames.some((name) => wanted[name] > than[name]);
}

/** The sizes with some of them doubled. */
export function doubled(sizes: MapSizes, which: ReadonlySet<keyof MapSizes>): MapSizes {
  return boundedSizes((name) => sizes[name] * (which.has(name) ? 2 : 1));
}

function boundedSizes(entries: (name: keyof MapSizes) => number): MapSizes {
  return mapSizes((name) => Math.min(Math.max(entries(name), smallestSizes[name]), largestSizes[name]));
}

/** Slots that a set takes: a power of two. */
function rangeLength(count: number): number {
  return count <= 1 ? count : 2 ** (32 - Math.clz32(count - 1));
}
