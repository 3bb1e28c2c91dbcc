import { type Clock, millis, type ServicePortKey } from '@switchyard/core';
import { type CountedTotal, type ServiceCounters, ServiceCounts } from '@switchyard/core/engine';
import type { BpfMap } from '@switchyard/native';
import { bytesOf } from '../render/address-words.ts';
import { offsetOf, sizeOf } from '../render/layouts.ts';
import type { IdentifiedService } from './maps/service-writer.ts';

/** Services whose counters are read, and the map. */
export interface StatisticsReading {
  /** The current map. Growth replaces it, also during a reading. Throws `HostError` when none is open. */
  readonly statistics: () => BpfMap;
  readonly services: Iterable<IdentifiedService>;
  readonly isKnown: (key: ServicePortKey) => boolean;
}

/** Field of a record, and the totals that it adds to; all services share the array. */
const totals: readonly (readonly [offset: number, letter: string, totals: readonly CountedTotal[]])[] = [
  [offsetOf('statistics', 'connections'), 'c', ['connections']],
  [offsetOf('statistics', 'no_local_endpoint'), 'l', ['noLocalEndpoint']],
  [offsetOf('statistics', 'no_endpoints'), 'e', ['noEndpoints']],
  [offsetOf('statistics', 'source_range'), 's', ['sourceRange']],
];
const recordSize = sizeOf('statistics');
/** Some 1 ms of look-ups; between two slices the event loop runs. */
const lookupsPerSlice = 500;

/** Counters of services from the pinned map `statistics`; the writer clears the record of an id with a new owner. */
export class ServiceStatistics {
  readonly #clock: Clock;
  readonly #counts = new ServiceCounts();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get latest(): ReadonlyMap<ServicePortKey, ServiceCounters> {
    return this.#counts.latest;
  }

  /** Takes some 2 us for each service. May run during an apply. Rejects with `HostError`. */
  async read(
    { statistics, services, isKnown }: StatisticsReading,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<ServicePortKey, ServiceCounters>> {
    this.#counts.beginReading();
    const counted = [...services];
    const reading = new Map<string, number>();
    const counting = new Set<number>(); // most services of most nodes have not counted anything
    for (const [index, { id }] of counted.entries()) {
      if (index > 0 && index % lookupsPerSlice === 0) await this.#clock.sleep(millis(0), signal);
      if (addCounts(reading, id, statistics().lookup(bytesOf(Uint32Array.of(id))))) counting.add(id);
    }
    return this.#counts.update({
      services: counted,
      reading,
      keyOf: ({ key }) => key,
      visit: ({ id }, count) => {
        if (!counting.has(id)) return;
        for (const [, letter, names] of totals) count(nameOf(id, letter), names);
      },
      isKnown,
    });
  }
}

/** Sums the CPUs and returns whether a counter is not zero. An id beyond the map counts as zero. */
function addCounts(reading: Map<string, number>, id: number, values: Uint8Array = new Uint8Array(0)): boolean {
  const view = new DataView(values.buffer, values.byteOffset, values.byteLength);
  let hasCounted = false;
  for (const [offset, letter] of totals) {
    let sum = 0;
    for (let at = offset; at < values.byteLength; at += recordSize) {
      sum += view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32;
    }
    if (sum === 0) continue;
    reading.set(nameOf(id, letter), sum);
    hasCounted = true;
  }
  return hasCounted;
}

function nameOf(id: number, letter: string): string {
  return `${letter}${id}`;
}
