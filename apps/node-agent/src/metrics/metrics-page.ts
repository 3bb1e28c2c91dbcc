import { type Clock, metricDeclarations, type Metrics, type IpFamily, millis, noopMetrics } from '@switchyard/core';
import {
  contentTypes,
  createPrometheusMetrics,
  familyText,
  formatFor,
  type MetricFamily,
  type MetricsFormat,
  pageEnd,
} from '@switchyard/host';

/** Works out families when a page is asked for. A name must have one collector. */
export type Collector = (signal: AbortSignal) => readonly MetricFamily[] | Promise<readonly MetricFamily[]>;

/** A page as it is sent. */
export interface PageText {
  /** For the header of this name. */
  readonly contentType: string;
  readonly body: string;
}

/** What `/metrics` and `/metrics/slis` say. */
export interface MetricsPage {
  /** Where the agent's parts measure. */
  readonly metrics: Metrics;
  /** Adds to `/metrics` (default) or `/metrics/slis`. */
  addCollector(collector: Collector, path?: MetricsPath): void;
  /** The text of `/metrics`, in the format that an `Accept` header asks for. */
  metricsText(accept: string | undefined, signal: AbortSignal): Promise<PageText>;
  /** The text of `/metrics/slis`. */
  slisText(accept: string | undefined, signal: AbortSignal): Promise<PageText>;
}

export type MetricsPath = '/metrics' | '/metrics/slis';

/** A page without anything measured as it happens. */
export interface MetricsPageOptions {
  readonly ipFamilies: readonly IpFamily[];
  readonly clock: Clock;
}

/** An empty page of a process that measures. */
export function createMetricsPage({ ipFamilies, clock }: MetricsPageOptions): MetricsPage {
  const measured = createPrometheusMetrics({ declarations: Object.values(metricDeclarations), ipFamilies });
  const collectors: Record<MetricsPath, Collector[]> = {
    '/metrics': [() => measured.families()],
    '/metrics/slis': [],
  };
  const page = async (path: MetricsPath, accept: string | undefined, signal: AbortSignal): Promise<PageText> => {
    const format = formatFor(accept);
    const collected = await Promise.all(collectors[path].map((collect) => collect(signal)));
    const families = collected.flat().sort((a, b) => (a.name < b.name ? -1 : 1));
    return { contentType: contentTypes[format], body: await writePage(families, { format, clock }, signal) };
  };
  return {
    metrics: measured,
    addCollector: (collector, path = '/metrics') => void collectors[path].push(collector),
    metricsText: (accept, signal) => page('/metrics', accept, signal),
    slisText: (accept, signal) => page('/metrics/slis', accept, signal),
  };
}

/** Says nothing, for an agent without a server of metrics. */
export const noopMetricsPage: MetricsPage = {
  metrics: noopMetrics,
  addCollector: () => undefined,
  metricsText: () => Promise.resolve({ contentType: contentTypes.text, body: '' }),
  slisText: () => Promise.resolve({ contentType: contentTypes.text, body: '' }),
};

interface Writing {
  readonly format: MetricsFormat;
  readonly clock: Clock;
}

/** Gives way after so many characters: 2 ms of writing. */
const sliceLength = 500_000;

async function writePage(
  families: readonly MetricFamily[],
  { format, clock }: Writing,
  signal: AbortSignal,
): Promise<string> {
  const pieces: string[] = [];
  let length = 0;
  for (const family of families) {
    for (const piece of familyText(family, format)) {
      pieces.push(piece);
      length += piece.length;
      if (length < sliceLength) continue;
      length = 0;
      await clock.sleep(millis(0), signal);
    }
  }
  return pieces.join('') + pageEnd[format];
}
