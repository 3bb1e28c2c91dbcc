import { type Clock, type IpFamily, type Millis, millis, type ServicePortKey } from '@switchyard/core';
import { type DataplaneBackend, type ServiceCounters } from '@switchyard/core/engine';

/** Options of `BoundedCounters`. */
export interface BoundedCountersOptions {
  readonly backend: Pick<DataplaneBackend, 'ipFamily' | 'observers'>;
  readonly clock: Clock;
  /** Maximum number of Service ports with their own series. */
  readonly limit: number;
  /** Time for which a reading is reused. */
  readonly maxAge: Millis;
}

/** The counters of some services. */
export interface CountersReading {
  readonly ipFamily: IpFamily;
  /** In no particular order; at most `limit`. */
  readonly services: ReadonlyMap<ServicePortKey, ServiceCounters>;
  /** Service ports that are left out because of the limit. */
  readonly omitted: number;
}

/**
 * The kernel's counters of Services behind a limit. Concurrent requests share one read of the kernel, and `maxAge` is the
 * minimum interval between reads.
 *
 * Selection of Services: those shown before with a count above 0 stay, so that their graphs continue. The busiest others come
 * next, then idle ones that were shown before, then other idle ones.
 */
export class BoundedCounters {
  readonly #options: BoundedCountersOptions;
  #shown: ReadonlySet<ServicePortKey> = new Set();
  #latest: { readonly reading: CountersReading; readonly at: Millis } | undefined;
  #inFlight: Promise<CountersReading> | undefined;

  constructor(options: BoundedCountersOptions) {
    this.#options = options;
  }

  /** The last reading, however old; empty before the first. */
  get latest(): CountersReading {
    const { ipFamily } = this.#options.backend;
    return this.#latest?.reading ?? { ipFamily, services: new Map(), omitted: 0 };
  }

  /** Rejects with `HostError` when the kernel cannot be read. The signal is that of the process: others wait as well. */
  read(signal: AbortSignal): Promise<CountersReading> {
    const { clock, maxAge } = this.#options;
    if (this.#latest !== undefined && clock.monotonic() - this.#latest.at < maxAge) {
      return Promise.resolve(this.#latest.reading);
    }
    this.#inFlight ??= this.#readKernel(signal).finally(() => (this.#inFlight = undefined));
    return this.#inFlight;
  }

  async #readKernel(signal: AbortSignal): Promise<CountersReading> {
    const { backend, clock, limit } = this.#options;
    const all = (await backend.observers.counters?.(signal)) ?? new Map<ServicePortKey, ServiceCounters>();
    const services = all.size <= limit ? all : await this.#choose(all, signal);
    const reading = { ipFamily: backend.ipFamily, services, omitted: all.size - services.size };
    this.#latest = { reading, at: clock.monotonic() };
    return reading;
  }

  async #choose(
    all: ReadonlyMap<ServicePortKey, ServiceCounters>,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<ServicePortKey, ServiceCounters>> {
    const { clock, limit } = this.#options;
    await clock.sleep(millis(0), signal); // yields to other work, because adding up the reading takes long
    this.#shown = choose(all, this.#shown, limit);
    const services = new Map<ServicePortKey, ServiceCounters>();
    for (const key of this.#shown) {
      const counters = all.get(key);
      if (counters !== undefined) services.set(key, counters);
    }
    return services;
  }
}

/** Iterates once and sorts only new Services with a count above 0, because with 10,000 Services this must stay short. */
function choose(
  all: ReadonlyMap<ServicePortKey, ServiceCounters>,
  shown: ReadonlySet<ServicePortKey>,
  limit: number,
): ReadonlySet<ServicePortKey> {
  const kept: ServicePortKey[] = [];
  const busy: { readonly key: ServicePortKey; readonly total: number }[] = [];
  const idle: ServicePortKey[] = [];
  for (const [key, counters] of all) {
    const total = totalOf(counters);
    if (total === 0) idle.push(key);
    else if (shown.has(key)) kept.push(key);
    else busy.push({ key, total });
  }
  busy.sort((a, b) => b.total - a.total || (a.key < b.key ? -1 : 1));
  const chosen = new Set(kept.slice(0, limit));
  const fill = (keys: Iterable<ServicePortKey>): void => {
    for (const key of keys) {
      if (chosen.size >= limit) return;
      chosen.add(key);
    }
  };
  fill(busy.map(({ key }) => key));
  fill(idle.filter((key) => shown.has(key)));
  fill(idle);
  return chosen;
}

function totalOf({ connections, drops }: ServiceCounters): number {
  return connections + drops.noLocalEndpoint + drops.noEndpoints + drops.sourceRange;
}
