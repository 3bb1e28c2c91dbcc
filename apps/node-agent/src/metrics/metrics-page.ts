import {
  type Clock,
  type IpFamily,
  type MetricDeclaration,
  metricDeclarations,
  type Metrics,
  millis,
} from '@switchyard/core';
import {
  contentTypes,
  createPrometheusMetrics,
  familyText,
  formatFor,
  type MetricFamily,
  type MetricsFormat,
  pageEnd,
} from '@switchyard/host';
import { traitsOf } from '../backends.ts';

/** Computes families at a scrape. A name must have one collector. */
export type Collector = (signal: AbortSignal) => readonly MetricFamily[] | Promise<readonly MetricFamily[]>;

/** A page as it is sent. */
export interface MetricsText {
  /** For the header of this name. */
  readonly contentType: string;
  /** Parts of the body, iterated at most once. Other work runs between two parts. */
  readonly pieces: AsyncIterable<string>;
}

/** Contents of `/metrics`. */
export interface MetricsPage {
  readonly metrics: Metrics;
  addCollector(collector: Collector): void;
  /** The text of the page in the format of an `Accept` header. Rejects if a collector rejects. */
  metricsText(accept: string | undefined, signal: AbortSignal): Promise<MetricsText>;
}

interface MetricsPageOptions {
  /** Metrics of other modes are not on the page. */
  readonly mode: string;
  readonly ipFamilies: readonly IpFamily[];
  readonly clock: Clock;
}

/** The page of a process that has not measured anything yet. */
export function createMetricsPage({ mode, ipFamilies, clock }: MetricsPageOptions): MetricsPage {
  const { metricSets } = traitsOf(mode);
  const metrics = createPrometheusMetrics({ declarations: Object.values(metricDeclarations), ipFamilies });
  const collectors: Collector[] = [() => metrics.families()];
  return {
    metrics,
    addCollector: (collector) => void collectors.push(collector),
    async metricsText(accept, signal) {
      const format = formatFor(accept);
      const collected = await Promise.all(collectors.map((collect) => collect(signal)));
      const served = collected.flat().filter(({ name }) => {
        const set = declared[name]?.set;
        return set === undefined || metricSets.includes(set);
      });
      const families = served.sort((a, b) => (a.name < b.name ? -1 : 1));
      return { contentType: contentTypes[format], pieces: write(families, { format, clock }, signal) };
    },
  };
}

const declared: Readonly<Record<string, MetricDeclaration>> = Object.assign(
  {},
  ...Object.values(metricDeclarations).flatMap((all) => Object.values(all)),
);

/** Yields to other work after this number of characters: a millisecond or two of writing. */
const pieceLength = 100_000;

async function* write(
  families: readonly MetricFamily[],
  { format, clock }: { readonly format: MetricsFormat; readonly clock: Clock },
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  let piece = '';
  for (const family of families) {
    for (const text of familyText(family, format)) {
      piece += text;
      if (piece.length < pieceLength) continue;
      yield piece;
      piece = '';
      await clock.sleep(millis(0), signal);
    }
  }
  yield piece + pageEnd[format];
}
