import { noopMetrics, UsageError } from '@switchyard/core';
import type { MetricsPage, MetricsText } from '../metrics-page.ts';

/** Returns the whole body of a page. */
export async function joinPieces({ pieces }: MetricsText): Promise<string> {
  let body = '';
  for await (const piece of pieces) body += piece;
  return body;
}

/** Says nothing, for tests of other things. */
export const noopMetricsPage: MetricsPage = {
  metrics: noopMetrics,
  addCollector: () => undefined,
  metricsText: () => Promise.reject(new UsageError('metrics.none', 'this agent was started without a page of metrics')),
};
