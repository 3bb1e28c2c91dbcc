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
    const haveDrops = hasDrops(reading) || hasDrops(this.#seen);
    for (const { service, id } of services) {
      let totals = idle;
      const count = (element: ElementId, total: Total): void => {
        const packets = reading.get(element) ?? this.#lastOf(element, service.key);
        if (packets === 0) return;
        if (totals === idle) totals = noTotals();
        totals[total] += packets;
        now.set(element, { owner: service.key, total, packets });
      };
      for (const frontend of service.frontends) {
        count(frontendId(frontend, service.protocol, this.#suffix), 'connections');
      }
      if (haveDrops) for (const set of dropSets) count(elementId(`${set}${this.#suffix}`, hex(id)), set);
      current.set(service.key, totals);
    }
    this.#settle(now, (key) => current.has(key), isKnown);
    this.#seen = now;
    this.#latest = new Map([...current].map(([key, totals]) => [key, countersFrom(totals, this.#past.get(key))]));
    return this.#latest;
  }

  /** What became of what was seen before: counted on, replaced, or out of sight for the time being. */
  #settle(
    now: Map<ElementId, Seen>,
    isCurrent: (key: ServicePortKey) => boolean,
    isKnown: (key: ServicePortKey) => boolean,
  ): void {
    for (const [id, seen] of this.#seen) {
      const after = now.get(id);
      const hasGoneOn = after?.owner === seen.owner && after.packets >= seen.packets;
      if (hasGoneOn) continue;
      if (isCurrent(seen.owner) || after !== undefined) this.#addToPast(seen);
      else now.set(id, seen);
    }
    const isForgotten = (key: ServicePortKey): boolean => !isCurrent(key) && !isKnown(key);
    for (const key of this.#past.keys()) if (isForgotten(key)) this.#past.delete(key);
    for (const [id, { owner }] of now) if (isForgotten(owner)) now.delete(id);
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

/** Shared by all services for which nothing was counted. */
const idle: Totals = noTotals();
const idleCounters: ServiceCounters = { connections: 0, drops: { noLocalEndpoint: 0, noEndpoints: 0, sourceRange: 0 } };

/** Most nodes refuse nothing: then no service has to be asked for it. */
function hasDrops(elements: ReadonlyMap<ElementId, unknown>): boolean {
  for (const id of elements.keys()) if (id.startsWith('drops-')) return true;
  return false;
}

function countersFrom(current: Totals, past: Totals = idle): ServiceCounters {
  if (current === idle && past === idle) return idleCounters;
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
