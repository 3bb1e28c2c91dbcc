import type { MetricDeclaration, MetricDeclarations } from './metric-declaration.ts';
import { kubeProxyMetrics } from './kube-proxy-metrics.ts';
import { ownMetrics } from './own-metrics.ts';

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
