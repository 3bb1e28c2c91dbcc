import type { ServiceCounters, ServicePortKey } from '@switchyard/core';
import { type ElementId, elementId, frontendId } from './elements.ts';
import { hex } from './handles.ts';
import { type DropSet, dropSets, type FamilySuffix } from './names.ts';
import type { PlacedService } from './place-service.ts';

/** What an element's counter adds to. */
type Total = 'connections' | DropSet;
type Totals = Record<Total, number>;

/** What the elements of some objects have counted. Elements that counted nothing may be left out. */
export type Reading = ReadonlyMap<ElementId, number>;

/** What one element had counted when it was read last. */
interface Seen {
  readonly owner: ServicePortKey;
  readonly total: Total;
  readonly packets: number;
}

/**
 * Makes totals of services out of the counters of elements. An element that is replaced counts anew; its
 * service's totals never fall while this object lives. What an element counted between the reading before it was
 * replaced and that moment is lost.
 *
 * Keeps what is not zero, and only once totals were asked for.
 */
export class ServiceCounts {
  readonly #suffix: FamilySuffix;
  #seen: ReadonlyMap<ElementId, Seen> = new Map();
  /** What elements counted that are replaced or gone. */
  readonly #past = new Map<ServicePortKey, Totals>();
  readonly #replaced = new Set<ElementId>();
  #latest: ReadonlyMap<ServicePortKey, ServiceCounters> = new Map();

  constructor(suffix: FamilySuffix) {
    this.#suffix = suffix;
  }

  /** The totals of the last `update`. */
  get latest(): ReadonlyMap<ServicePortKey, ServiceCounters> {
    return this.#latest;
  }

  /** This element is deleted or replaced: if it comes back, it counts from 0. */
  noteDeleted(id: ElementId): void {
    if (this.#seen.has(id)) this.#replaced.add(id);
  }

  /** To be called before counters are read. What is replaced while they are is settled by the next reading. */
  beginReading(): void {
    const left = new Map(this.#seen);
    for (const id of this.#replaced) {
      const seen = left.get(id);
      if (seen === undefined) continue;
      this.#addToPast(seen);
      left.delete(id);
    }
    this.#replaced.clear();
    this.#seen = left;
  }

  /**
   * The totals of these services, by what was just read. `isKnown`: the service is not among them, but it will be again,
   * because it could not be written yet; all others are forgotten.
   */
  update(
    services: Iterable<PlacedService>,
    reading: Reading,
    isKnown: (key: ServicePortKey) => boolean,
  ): ReadonlyMap<ServicePortKey, ServiceCounters> {
    const now = new Map<ElementId, Seen>();
    const current = new Map<ServicePortKey, Totals>();
    for (const placed of services) {
      const totals = noTotals();
      for (const [id, total] of countersOf(placed, this.#suffix)) {
        const packets = reading.get(id) ?? this.#lastOf(id, placed.service.key);
        totals[total] += packets;
        if (packets > 0) now.set(id, { owner: placed.service.key, total, packets });
      }
      current.set(placed.service.key, totals);
    }
    for (const [id, seen] of this.#seen) {
      const after = now.get(id);
      const hasGoneOn = after?.owner === seen.owner && after.packets >= seen.packets;
      if (hasGoneOn) continue;
      if (current.has(seen.owner) || after !== undefined) this.#addToPast(seen);
      else now.set(id, seen);
    }
    const isForgotten = (key: ServicePortKey): boolean => !current.has(key) && !isKnown(key);
    for (const key of this.#past.keys()) if (isForgotten(key)) this.#past.delete(key);
    for (const [id, { owner }] of now) if (isForgotten(owner)) now.delete(id);
    this.#seen = now;
    this.#latest = new Map([...current].map(([key, totals]) => [key, countersFrom(totals, this.#past.get(key))]));
    return this.#latest;
  }

  /** A list may lack an element while its hash table grows, and one that counted nothing. */
  #lastOf(id: ElementId, owner: ServicePortKey): number {
    const seen = this.#seen.get(id);
    return seen?.owner === owner ? seen.packets : 0;
  }

  #addToPast({ owner, total, packets }: Seen): void {
    const past = this.#past.get(owner) ?? noTotals();
    past[total] += packets;
    this.#past.set(owner, past);
  }
}

function noTotals(): Totals {
  return { connections: 0, 'drops-no-local': 0, 'drops-no-endpoints': 0, 'drops-source': 0 };
}

/** The elements whose counters belong to a service. */
function* countersOf(
  { service, id }: PlacedService,
  suffix: FamilySuffix,
): Generator<readonly [ElementId, Total], undefined, unknown> {
  for (const frontend of service.frontends) yield [frontendId(frontend, service.protocol, suffix), 'connections'];
  for (const set of dropSets) yield [elementId(`${set}${suffix}`, hex(id)), set];
  return undefined;
}

const none: Totals = noTotals();

function countersFrom(current: Totals, past: Totals = none): ServiceCounters {
  const sum = (total: Total): number => current[total] + past[total];
  return {
    connections: sum('connections'),
    drops: {
      noLocalEndpoint: sum('drops-no-local'),
      noEndpoints: sum('drops-no-endpoints'),
      sourceRange: sum('drops-source'),
    },
  };
}
