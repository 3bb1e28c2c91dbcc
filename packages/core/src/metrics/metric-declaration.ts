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

/** One metric, whatever its type. Units are in the name, as Prometheus wants it. */
export interface MetricDeclaration {
  /** One sentence, without a full stop. */
  readonly help: string;
  /** Names of the labels in the order in which they are written: the alphabet's, as kube-proxy. */
  readonly labels: readonly string[];
  /**
   * All values of a label, where they are known: their combinations are there from the start, as 0. `ip_family` is known
   * to the process and never stands here.
   */
  readonly values?: Readonly<Record<string, readonly string[]>>;
  /** Histograms only. */
  readonly buckets?: BucketSet;
  /** Not there before it is set: 0 would be a lie, such as a time in 1970. */
  readonly isAbsentFirst?: true;
  /** Served only by dataplanes that have this set; as in kube-proxy, absent elsewhere. Default: served by all. */
  readonly set?: MetricSet;
  /** What differs from kube-proxy's metric of this name. */
  readonly difference?: string;
}

/** A metric that is worked out when it is asked for. */
export interface CollectedDeclaration extends MetricDeclaration {
  readonly type: 'counter' | 'gauge';
  /** It is not on /metrics but there. */
  readonly path?: '/metrics/slis';
}

/** What is measured as it happens, by type, and what is worked out when it is asked for. */
export interface MetricDeclarations {
  readonly counters: Readonly<Record<string, MetricDeclaration>>;
  readonly gauges: Readonly<Record<string, MetricDeclaration>>;
  readonly histograms: Readonly<Record<string, MetricDeclaration & { readonly buckets: BucketSet }>>;
  readonly collected: Readonly<Record<string, CollectedDeclaration>>;
}

function steps(count: number, bound: (step: number) => number): readonly number[] {
  return Array.from({ length: count }, (_, step) => bound(step));
}
