import {
  type CollectedDeclaration,
  type CollectedName,
  InvariantError,
  kubeProxyMetrics,
  ownMetrics,
} from '@switchyard/core';
import { labelText, type MetricFamily } from './prometheus-text.ts';

/** One value with those of its labels, in the order in which the metric declares them. */
export type CollectedSample = readonly [value: number, ...labels: readonly string[]];

const declared: Readonly<Record<CollectedName, CollectedDeclaration>> = {
  ...kubeProxyMetrics.collected,
  ...ownMetrics.collected,
};

/** The family of a metric that is worked out when it is asked for. */
export function collectedFamily(name: CollectedName, samples: readonly CollectedSample[]): MetricFamily {
  const { type, help, labels: names } = declared[name];
  const series = samples.map(([value, ...labels]) => {
    if (labels.length === names.length) return { labels: labelText(names, labels), value };
    throw new InvariantError(`metric ${name} has the labels ${names.join(', ')}, not ${labels.length} of them`);
  });
  return { name, type, help, series };
}
