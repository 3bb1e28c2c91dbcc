import {
  type Clock,
  HostError,
  type IpFamily,
  type Logger,
  type Metrics,
  seconds,
  type ServicePortParts,
  servicePortParts,
} from '@switchyard/core';
import { type DataplaneBackend, type ServiceCounters } from '@switchyard/core/engine';
import { collectedFamily, type CollectedSample } from '@switchyard/host';
import type { Collector } from './metrics-page.ts';
import { BoundedCounters, type CountersReading } from './service-counters.ts';

/** Options of the metrics of Services. */
export interface ServiceMetricsOptions {
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

const dropReasons = {
  noEndpoints: 'no_endpoints',
  noLocalEndpoint: 'no_local_endpoint',
  sourceRange: 'source_range',
} as const satisfies Readonly<Record<keyof ServiceCounters['drops'], string>>;

/** Collects the families `switchyard_service_*`. If the kernel cannot be read, they keep their last values. */
export function serviceMetrics(options: ServiceMetricsOptions): Collector {
  const { clock, logger, metrics, signal } = options;
  const countable = options.backends.filter((backend) => backend.observers.counters !== undefined);
  const counters = countable.map(
    (backend) =>
      new BoundedCounters({
        backend,
        clock,
        get limit() {
          return options.limit;
        },
        maxAge,
      }),
  );
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
  (['noEndpoints', 'noLocalEndpoint', 'sourceRange'] as const).map((reason) => [
    counters.drops[reason],
    ipFamily,
    namespace,
    portName,
    protocol,
    dropReasons[reason],
    name,
  ]);
