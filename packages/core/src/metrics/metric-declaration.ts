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
