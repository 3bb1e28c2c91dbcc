import {
  type Clock,
  HostError,
  type IpFamily,
  type Logger,
  type Metrics,
  seconds,
  type ServicePortParts,
  servicePortParts,
  type Millis,
  millis,
  type ServicePortKey,
} from '@switchyard/core';
import type { DataplaneBackend, ServiceCounters } from '@switchyard/core/engine';
import { collectedFamily, type CollectedSample } from '@switchyard/host';
import type { Collector } from './metrics-page.ts';

interface ServiceMetricsOptions {
  readonly backends: readonly DataplaneBackend[];
  /** Maximum number of Service ports of a family with their own series. Read for each reading, so it may change. */
  readonly limit: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Signal of the process: an aborted scrape must not end a reading that others wait for. */
  readonly signal: AbortSignal;
}

/** Age up to which scrapers share a reading, which costs the kernel 3 to 4 ms per 1,000 Services. */
const maxAge = seconds(5);

const dropReasons = [
  ['noEndpoints', 'no_endpoints'],
  ['noLocalEndpoint', 'no_local_endpoint'],
  ['sourceRange', 'source_range'],
] as const;

/** Collects the families `switchyard_service_*`. If the kernel cannot be read, they keep their last values. */
export function serviceMetrics(options: ServiceMetricsOptions): Collector {
  const { logger, metrics, signal } = options;
  const countable = options.backends.filter((backend) => backend.observers.counters !== undefined);
  const counters = countable.map((backend) => new BoundedCounters(backend, options));
  const failing = new Set<BoundedCounters>();
  const read = async (one: BoundedCounters): Promise<CountersReading> => {
    try {
      const reading = await one.read(signal);
      failing.delete(one);
      return reading;
    } catch (error) {
      if (signal.aborted || !(error instanceof HostError)) throw error;
      const { ipFamily } = one.latest;
      metrics.add('switchyard_service_metrics_failures_total', { ip_family: ipFamily });
      if (!failing.has(one))
        logger.warn('counters of Services cannot be read; the last ones are shown', { ipFamily, error });
      failing.add(one);
      return one.latest;
    }
  };
  return async () => {
    const readings: CountersReading[] = [];
    for (const one of counters) readings.push(await read(one)); // sequentially, to block the event loop for less time
    return [
      collectedFamily('switchyard_service_connections_total', samples(readings, connections)),
      collectedFamily('switchyard_service_drops_total', samples(readings, drops)),
      collectedFamily(
        'switchyard_service_metrics_omitted',
        readings.map(({ ipFamily, omitted }) => [omitted, ipFamily] as const),
      ),
    ];
  };
}

/** Returns the samples of one Service port, in the order of the labels. */
type SamplesOf = (ipFamily: IpFamily, key: ServicePortParts, counters: ServiceCounters) => readonly CollectedSample[];

/** Generates samples while they are written, because there may be many and writing yields in between. */
function samples(readings: readonly CountersReading[], samplesOf: SamplesOf): Iterable<CollectedSample> {
  return {
    *[Symbol.iterator]() {
      for (const { ipFamily, services } of readings) {
        for (const [key, counters] of services) yield* samplesOf(ipFamily, servicePortParts(key), counters);
      }
    },
  };
}

const connections: SamplesOf = (ipFamily, { namespace, name, portName, protocol }, counters) => [
  [counters.connections, ipFamily, namespace, portName, protocol, name],
];

const drops: SamplesOf = (ipFamily, { namespace, name, portName, protocol }, counters) =>
  dropReasons.map(([count, reason]) => {
    const labels = [ipFamily, namespace, portName, protocol, reason, name] as const;
    return [counters.drops[count], ...labels];
  });

type CounterLimits = Pick<ServiceMetricsOptions, 'clock' | 'limit'>;

interface CountersReading {
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
  readonly #backend: Pick<DataplaneBackend, 'ipFamily' | 'observers'>;
  readonly #options: CounterLimits;
  #shown: ReadonlySet<ServicePortKey> = new Set();
  #latest: { readonly reading: CountersReading; readonly at: Millis } | undefined;
  #inFlight: Promise<CountersReading> | undefined;

  constructor(backend: Pick<DataplaneBackend, 'ipFamily' | 'observers'>, options: CounterLimits) {
    this.#backend = backend;
    this.#options = options;
  }

  /** The last reading, however old; empty before the first. */
  get latest(): CountersReading {
    return this.#latest?.reading ?? { ipFamily: this.#backend.ipFamily, services: new Map(), omitted: 0 };
  }

  /** Rejects with `HostError` when the kernel cannot be read. The signal is that of the process: others wait as well. */
  read(signal: AbortSignal): Promise<CountersReading> {
    const { clock } = this.#options;
    if (this.#latest !== undefined && clock.monotonic() - this.#latest.at < maxAge) {
      return Promise.resolve(this.#latest.reading);
    }
    this.#inFlight ??= this.#readKernel(signal).finally(() => (this.#inFlight = undefined));
    return this.#inFlight;
  }

  async #readKernel(signal: AbortSignal): Promise<CountersReading> {
    const { clock, limit } = this.#options;
    const { ipFamily, observers } = this.#backend;
    const all = (await observers.counters?.(signal)) ?? new Map<ServicePortKey, ServiceCounters>();
    const services = all.size <= limit ? all : await this.#choose(all, signal);
    const reading = { ipFamily, services, omitted: all.size - services.size };
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
    const { connections, drops } = counters;
    const total = connections + drops.noLocalEndpoint + drops.noEndpoints + drops.sourceRange;
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
