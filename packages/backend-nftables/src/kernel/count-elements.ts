import type { CountedTotal, CountsReading, ServiceCounters, ServiceCounts } from '@switchyard/core/engine';
import type { ServicePortKey } from '@switchyard/core';
import { elementId, frontendId } from '../render/elements.ts';
import { hex } from '../render/elements.ts';
import { type DropSet, dropSets, type FamilySuffix } from '../render/names.ts';
import type { PlacedService } from '../render/place-service.ts';

/** What was just read, and of which services. */
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
  // Most nodes refuse nothing: then no service has to be asked for it.
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
