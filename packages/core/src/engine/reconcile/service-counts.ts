import type { ServicePortKey } from '../../model/records/keys.ts';
import type { ServiceCounters } from '../dataplane-backend.ts';

/** One of the numbers of `ServiceCounters`. */
export type CountedTotal = 'connections' | keyof ServiceCounters['drops'];
type Totals = Record<CountedTotal, number>;

/** Counters of kernel objects, by names of the backend. Objects without counts may be omitted. */
export type CountsReading = ReadonlyMap<string, number>;

interface Seen {
  readonly owner: ServicePortKey;
  readonly totals: readonly CountedTotal[];
  readonly packets: number;
}

/** A reading and its services. */
export interface CountsUpdate<Service> {
  readonly services: Iterable<Service>;
  readonly reading: CountsReading;
  /** Names each object that counts for a service, and the totals that it adds to; equal objects share one array. */
  visit(service: Service, count: (id: string, totals: readonly CountedTotal[]) => void): void;
  keyOf(service: Service): ServicePortKey;
  /** Services that are missing until they can be written again; the totals of all other missing ones are dropped. */
  isKnown(key: ServicePortKey): boolean;
}

/**
 * Computes totals of services from the counters of kernel objects. A replaced object counts from 0; the totals of its
 * service never decrease while this object exists. Counts between the last reading of an object and its replacement are
 * lost.
 *
 * Stores only counts above zero, and only after totals were first requested.
 */
export class ServiceCounts {
  #seen: ReadonlyMap<string, Seen> = new Map();
  /** Counts of replaced or removed objects. */
  readonly #past = new Map<ServicePortKey, Totals>();
  readonly #replaced = new Set<string>();
  #latest: ReadonlyMap<ServicePortKey, ServiceCounters> = new Map();

  /** The totals of the last `update`. */
  get latest(): ReadonlyMap<ServicePortKey, ServiceCounters> {
    return this.#latest;
  }

  /** Whether an object with counts satisfies `fits`. */
  hasCounted(fits: (id: string) => boolean): boolean {
    return this.#seen.keys().some(fits);
  }

  /** Notes the deletion or replacement of an object; a new one counts from 0. */
  noteDeleted(id: string): void {
    if (this.#seen.has(id)) this.#replaced.add(id);
  }

  /** Notes the deletion or replacement of every object that satisfies `fits`. */
  noteAllDeleted(fits: (id: string) => boolean): void {
    for (const id of this.#seen.keys()) if (fits(id)) this.#replaced.add(id);
  }

  /** Call it before counters are read. The next reading accounts for objects that are replaced in between. */
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

  /** Returns the totals of these services after a reading. */
  update<Service>(update: CountsUpdate<Service>): ReadonlyMap<ServicePortKey, ServiceCounters> {
    const { services, reading, visit, keyOf, isKnown } = update;
    const now = new Map<string, Seen>();
    const current = new Map<ServicePortKey, Totals>();
    for (const service of services) {
      const owner = keyOf(service);
      let sums = current.get(owner) ?? idle;
      visit(service, (id, totals) => {
        const packets = reading.get(id) ?? this.#lastOf(id, owner);
        if (packets === 0) return;
        if (sums === idle) sums = noTotals();
        for (const total of totals) sums[total] += packets;
        now.set(id, { owner, totals, packets });
      });
      current.set(owner, sums);
    }
    this.#settle(now, (key) => current.has(key), isKnown);
    this.#seen = now;
    this.#latest = new Map([...current].map(([key, sums]) => [key, countersFrom(sums, this.#past.get(key))]));
    return this.#latest;
  }

  /** Accounts for objects of the last reading: still counting, replaced, or temporarily missing. */
  #settle(
    now: Map<string, Seen>,
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

  /** A reading may lack an object: a list while its hash table grows, or one that counted nothing. */
  #lastOf(id: string, owner: ServicePortKey): number {
    const seen = this.#seen.get(id);
    return seen?.owner === owner ? seen.packets : 0;
  }

  #addToPast({ owner, totals, packets }: Seen): void {
    const past = this.#past.get(owner) ?? noTotals();
    for (const total of totals) past[total] += packets;
    this.#past.set(owner, past);
  }
}

function noTotals(): Totals {
  return { connections: 0, noLocalEndpoint: 0, noEndpoints: 0, sourceRange: 0 };
}

/** Shared by all services without counts. */
const idle: Totals = noTotals();
const idleCounters: ServiceCounters = { connections: 0, drops: { noLocalEndpoint: 0, noEndpoints: 0, sourceRange: 0 } };

function countersFrom(current: Totals, past: Totals = idle): ServiceCounters {
  if (current === idle && past === idle) return idleCounters;
  const sum = (total: CountedTotal): number => current[total] + past[total];
  return {
    connections: sum('connections'),
    drops: {
      noLocalEndpoint: sum('noLocalEndpoint'),
      noEndpoints: sum('noEndpoints'),
      sourceRange: sum('sourceRange'),
    },
  };
}
