import type { MetricLabels, Metrics } from '../metrics/metrics.ts';

/** Keeps what is measured, for tests that assert it. Series are spelled `name{label=value,...}`. */
export class MemoryMetrics implements Metrics {
  /** Counters and gauges. */
  readonly values: Map<string, number> = new Map();
  /** Every value observed, in order. */
  readonly observed: Map<string, number[]> = new Map();

  add(name: string, labels: MetricLabels, amount = 1): void {
    const series = spelled(name, labels);
    this.values.set(series, (this.values.get(series) ?? 0) + amount);
  }

  set(name: string, labels: MetricLabels, value: number): void {
    this.values.set(spelled(name, labels), value);
  }

  observe(name: string, labels: MetricLabels, value: number): void {
    const series = spelled(name, labels);
    this.observed.set(series, [...(this.observed.get(series) ?? []), value]);
  }

  /** Series of counters and gauges whose name contains `part`, with their values. */
  like(part: string): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.values].filter(([series]) => series.includes(part)));
  }
}

function spelled(name: string, labels: MetricLabels): string {
  const parts = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
  return parts.length === 0 ? name : `${name}{${parts.sort().join(',')}}`;
}
