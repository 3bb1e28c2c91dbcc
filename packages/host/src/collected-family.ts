import {
  type CollectedDeclaration,
  type CollectedName,
  InvariantError,
  kubeProxyMetrics,
  ownMetrics,
} from '@switchyard/core';
import { labelText, type MetricFamily, type Series } from './prometheus-text.ts';

/** A value, then the values of its labels in the order of the metric's declaration. */
export type CollectedSample = readonly [value: number, ...labels: readonly string[]];

const declared: Readonly<Record<CollectedName, CollectedDeclaration>> = {
  ...kubeProxyMetrics.collected,
  ...ownMetrics.collected,
};

/** Returns the family of a metric that is computed at each scrape. `samples` is iterated when the family is written. */
export function collectedFamily(name: CollectedName, samples: Iterable<CollectedSample>): MetricFamily {
  const { type, help, labels: names } = declared[name];
  function* series(): Generator<Series, void, undefined> {
    for (const [value, ...labels] of samples) {
      if (labels.length === names.length) yield { labels: labelText(names, labels), value };
      else throw new InvariantError(`metric ${name} has the labels ${names.join(', ')}, not ${labels.length} of them`);
    }
  }
  return { name, type, help, series: { [Symbol.iterator]: series } };
}
