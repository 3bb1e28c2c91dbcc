import {
  bucketBounds,
  InvariantError,
  type IpFamily,
  type MetricDeclaration,
  type MetricDeclarations,
  type MetricLabels,
  type Metrics,
} from '@switchyard/core';
import { labelText, type MetricFamily } from './prometheus-text.ts';

/** Declared metrics and the node's IP families. */
export interface PrometheusMetricsOptions {
  readonly declarations: readonly MetricDeclarations[];
  /** Values of the label `ip_family`. */
  readonly ipFamilies: readonly IpFamily[];
}

/** Stores measurements for `familyText`. Never waits; measuring a known series allocates nothing. */
export interface PrometheusMetrics extends Metrics {
  /** All families sorted by name, including those without series. A live view. */
  families(): readonly MetricFamily[];
}

/** Creates the storage. Series whose label values are all declared start at 0. */
export function createPrometheusMetrics(options: PrometheusMetricsOptions): PrometheusMetrics {
  const views: MetricFamily[] = [];
  const values = new Map<string, SeriesByLabels<Value>>();
  const distributions = new Map<string, SeriesByLabels<Distribution>>();
  for (const { counters, gauges, histograms } of options.declarations) {
    for (const [type, declared] of [['counter', counters] as const, ['gauge', gauges] as const]) {
      for (const [name, one] of Object.entries(declared)) {
        const series = new SeriesByLabels<Value>(name, one.labels, (labels) => ({ labels, value: 0 }));
        knownLabels(one, options.ipFamilies).forEach((labels) => series.of(labels));
        values.set(name, series);
        views.push({ type, name, help: one.help, series });
      }
    }
    for (const [name, one] of Object.entries(histograms)) {
      const bounds = bucketBounds[one.buckets];
      const create = (labels: string): Distribution => {
        return { labels, bounds, counts: new Float64Array(bounds.length + 1), sum: 0 };
      };
      const series = new SeriesByLabels(name, one.labels, create);
      knownLabels(one, options.ipFamilies).forEach((labels) => series.of(labels));
      distributions.set(name, series);
      views.push({ type: 'histogram', name, help: one.help, bounds, series });
    }
  }
  views.sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    add(name, labels, amount = 1) {
      seriesOf(values, name, labels).value += amount;
    },
    set(name, labels, value) {
      seriesOf(values, name, labels).value = value;
    },
    observe(name, labels, value) {
      const series = seriesOf(distributions, name, labels);
      let index = 0; // of the first bucket whose bound is not below the value
      while ((series.bounds[index] ?? Infinity) < value) index++;
      series.counts[index] = (series.counts[index] ?? 0) + 1;
      series.sum += value;
    },
    families: () => views,
  };
}

interface Value {
  readonly labels: string;
  value: number;
}

interface Distribution {
  readonly labels: string;
  readonly bounds: readonly number[];
  readonly counts: Float64Array;
  sum: number;
}

/** Series of one metric by label values, iterated in creation order. */
class SeriesByLabels<S> {
  readonly #name: string;
  readonly #labels: readonly string[];
  readonly #create: (labels: string) => S;
  readonly #series = new Map<string, S>();

  constructor(name: string, labels: readonly string[], create: (labels: string) => S) {
    this.#name = name;
    this.#labels = labels;
    this.#create = create;
  }

  [Symbol.iterator](): Iterator<S> {
    return this.#series.values();
  }

  of(labels: MetricLabels): S {
    const names = this.#labels;
    const first = names[0] === undefined ? '' : labels[names[0]];
    const key = names.length < 2 ? (first ?? '') : names.map((name) => labels[name]).join('\0');
    return this.#series.get(key) ?? this.#add(key, labels);
  }

  #add(key: string, labels: MetricLabels): S {
    const values = this.#labels.map((label) => {
      const value = labels[label];
      if (value !== undefined) return value;
      throw new InvariantError(`metric ${this.#name} is measured without its label ${label}`);
    });
    const series = this.#create(labelText(this.#labels, values));
    this.#series.set(key, series);
    return series;
  }
}

function seriesOf<S>(all: ReadonlyMap<string, SeriesByLabels<S>>, name: string, labels: MetricLabels): S {
  const series = all.get(name);
  if (series === undefined) throw new InvariantError(`metric ${name} is not declared`);
  return series.of(labels);
}

/** Returns all combinations of label values; none if a label has no declared values. */
function knownLabels(declaration: MetricDeclaration, ipFamilies: readonly IpFamily[]): readonly MetricLabels[] {
  if (declaration.isAbsentFirst === true) return [];
  let combinations: readonly MetricLabels[] = [{}];
  for (const label of declaration.labels) {
    const values = label === 'ip_family' ? ipFamilies : (declaration.values?.[label] ?? []);
    combinations = combinations.flatMap((one) => values.map((value) => ({ ...one, [label]: value })));
  }
  return combinations;
}
