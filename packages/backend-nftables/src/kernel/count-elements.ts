import type { CountedTotal, CountsReading, ServiceCounters, ServiceCounts } from '@switchyard/core/engine';
import type { ServicePortKey } from '@switchyard/core';
import { elementId, type ElementId, frontendId, hex } from '../render/elements.ts';
import { countedObjects, type DropSet, dropSets, type FamilySuffix, type TableName } from '../render/names.ts';
import type { PlacedService } from '../render/place-service.ts';
import type { NftTransport } from './transport.ts';

export interface ElementsReading {
  readonly services: Iterable<PlacedService>;
  readonly reading: CountsReading;
  readonly suffix: FamilySuffix;
  /** As for `CountsUpdate.isKnown`. */
  readonly isKnown: (key: ServicePortKey) => boolean;
}

const connections: readonly CountedTotal[] = ['connections'];
const drops: Readonly<Record<DropSet, readonly CountedTotal[]>> = {
  'drops-no-local': ['noLocalEndpoint'],
  'drops-no-endpoints': ['noEndpoints'],
  'drops-source': ['sourceRange'],
};

/** Adds up what the elements of services have counted: frontends, and refusals by the service's number. */
export function countElements(
  counts: ServiceCounts,
  { services, reading, suffix, isKnown }: ElementsReading,
): ReadonlyMap<ServicePortKey, ServiceCounters> {
  // Most nodes refuse nothing: then the drop sets are skipped for all services.
  const haveDrops = reading.keys().some(isDrop) || counts.hasCounted(isDrop);
  return counts.update({
    services,
    reading,
    keyOf: ({ service }) => service.key,
    visit: ({ service, id }, count) => {
      for (const frontend of service.frontends) count(frontendId(frontend, service.protocol, suffix), connections);
      if (haveDrops) for (const set of dropSets) count(elementId(`${set}${suffix}`, hex(id)), drops[set]);
    },
    isKnown,
  });
}

function isDrop(id: string): boolean {
  return id.startsWith('drops-');
}

/** Returns all counters of one family of a table that are not 0; undefined when a map or set is missing. */
export async function readCounts(
  transport: Pick<NftTransport, 'readCounters'>,
  table: TableName,
  suffix: FamilySuffix,
  signal: AbortSignal,
): Promise<ReadonlyMap<ElementId, number> | undefined> {
  const reading = new Map<ElementId, number>();
  for (const object of [...countedObjects, ...dropSets]) {
    const counters = await transport.readCounters({ table, object, suffix }, signal);
    if (counters === undefined) return undefined;
    for (const [key, packets] of counters) if (packets > 0) reading.set(elementId(`${object}${suffix}`, key), packets);
  }
  return reading;
}
