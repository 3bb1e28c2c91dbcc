import { kubeProxyMetrics } from './kube-proxy-metrics.ts';
import { ownMetrics } from './own-metrics.ts';
import type { MetricSet } from '../model/forwarding/dataplane-traits.ts';

/** Upper bounds of a histogram's buckets by name; +Inf is added when they are written. */
export type BucketSet = 'exponential' | 'networkProgramming' | 'restClient';

/** The bounds, in seconds, as kube-proxy 1.36 has them. */
export const bucketBounds: Readonly<Record<BucketSet, readonly number[]>> = {
  exponential: steps(15, (step) => 2 ** step / 1000),
  // The first bound is an accident of kube-proxy's, and a series that dashboards may name.
  networkProgramming: [
    0,
    0.25,
    0.5,
    ...steps(59, (step) => 1 + step),
    ...steps(12, (step) => 60 + 5 * step),
    ...steps(7, (step) => 120 + 30 * step),
  ],
  restClient: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
};

/** One metric of any type. Its name contains the unit, as Prometheus requires. */
export interface MetricDeclaration {
  /** One sentence, without a full stop. */
  readonly help: string;
  /** Names of the labels in alphabetical order, in which they are written, as by kube-proxy. */
  readonly labels: readonly string[];
  /**
   * All values of a label, where they are known: their combinations are served from the start, as 0. The process knows the
   * values of `ip_family`; they are never listed here.
   */
  readonly values?: Readonly<Record<string, readonly string[]>>;
  /** Histograms only. */
  readonly buckets?: BucketSet;
  /** Absent before it is set: 0 would be wrong, such as a time in 1970. */
  readonly isAbsentFirst?: true;
  /** Served only by dataplanes that have this set; as in kube-proxy, absent elsewhere. Default: served by all. */
  readonly set?: MetricSet;
  /** Difference from kube-proxy's metric of this name. */
  readonly difference?: string;
}

/** A metric that is computed at a scrape. */
export interface CollectedDeclaration extends MetricDeclaration {
  readonly type: 'counter' | 'gauge';
  /** Path that serves it instead of /metrics. */
  readonly path?: '/metrics/slis';
}

/** Metrics that are recorded as events happen, by type, and metrics that are computed at a scrape. */
export interface MetricDeclarations {
  readonly counters: Readonly<Record<string, MetricDeclaration>>;
  readonly gauges: Readonly<Record<string, MetricDeclaration>>;
  readonly histograms: Readonly<Record<string, MetricDeclaration & { readonly buckets: BucketSet }>>;
  readonly collected: Readonly<Record<string, CollectedDeclaration>>;
}

function steps(count: number, bound: (step: number) => number): readonly number[] {
  return Array.from({ length: count }, (_, step) => bound(step));
}

/*
 * Every metric of the agent is declared once: kube-proxy's in kube-proxy-metrics.ts, Switchyard's in own-metrics.ts. Labels have
 * bounded values, never a Service name. The one exception, `switchyard_service_*`, is computed at a scrape, with a limit of
 * series, and cannot be written here.
 */
type Counters = typeof kubeProxyMetrics.counters & typeof ownMetrics.counters;
type Gauges = typeof kubeProxyMetrics.gauges & typeof ownMetrics.gauges;
type Histograms = typeof kubeProxyMetrics.histograms & typeof ownMetrics.histograms;
type Collected = typeof kubeProxyMetrics.collected & typeof ownMetrics.collected;

/** Name of a declared counter. */
export type CounterName = keyof Counters;
/** Name of a declared gauge. */
export type GaugeName = keyof Gauges;
/** Name of a declared histogram. */
export type HistogramName = keyof Histograms;
/** A metric that is computed at a scrape. */
export type CollectedName = keyof Collected;

/** Every declaration, by origin of the metric. */
export const metricDeclarations: Readonly<Record<'kube-proxy' | 'switchyard', MetricDeclarations>> = {
  'kube-proxy': kubeProxyMetrics,
  switchyard: ownMetrics,
};

/** Exactly the labels a metric is declared with. */
export type LabelsOf<D extends MetricDeclaration> = Readonly<Record<D['labels'][number], string>>;

/** Values of some metric's labels. */
export type MetricLabels = Readonly<Record<string, string>>;

/** Receiver of measurements. Passed in; nothing registers globally. */
export interface Metrics {
  /** Adds `amount` (default 1) to a counter. */
  add<N extends CounterName>(name: N, labels: LabelsOf<Counters[N]>, amount?: number): void;
  /** Sets a gauge. */
  set<N extends GaugeName>(name: N, labels: LabelsOf<Gauges[N]>, value: number): void;
  /** Records one value of a distribution, in the unit of the metric's name. */
  observe<N extends HistogramName>(name: N, labels: LabelsOf<Histograms[N]>, value: number): void;
}

const ignore = (): void => undefined;

/** Discards everything. */
export const noopMetrics: Metrics = { add: ignore, set: ignore, observe: ignore };
