import {
  type CollectedDeclaration,
  type CollectedName,
  InvariantError,
  kubeProxyMetrics,
  ownMetrics,
} from '@switchyard/core';

/** Text formats that Prometheus reads: 0.0.4 and OpenMetrics 1.0. */
export type MetricsFormat = 'text' | 'openmetrics';

/** One value with its labels, as `labelText` made them. */
export interface Series {
  readonly labels: string;
  readonly value: number;
}

/** A distribution. `counts` has the number of values per bucket, not cumulative; the last bucket is +Inf. */
export interface HistogramSeries {
  readonly labels: string;
  readonly counts: Float64Array;
  readonly sum: number;
}

/** All series of one name. */
export type MetricFamily =
  | {
      readonly type: 'counter' | 'gauge';
      readonly name: string;
      readonly help: string;
      readonly series: Iterable<Series>;
    }
  | {
      readonly type: 'histogram';
      readonly name: string;
      readonly help: string;
      /** Upper bounds, ascending, without +Inf. */
      readonly bounds: readonly number[];
      readonly series: Iterable<HistogramSeries>;
    };

/** `Content-Type` of a format. */
export const contentTypes: Readonly<Record<MetricsFormat, string>> = {
  text: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/** Last line of a page per format. */
export const pageEnd: Readonly<Record<MetricsFormat, string>> = { text: '', openmetrics: '# EOF\n' };

/** Series per chunk: at most a millisecond of work. */
const seriesPerChunk = 1000;

/** `a="x",b="y"`, escaped. Names and values in the same order. */
export function labelText(names: readonly string[], values: readonly string[]): string {
  let text = '';
  for (let index = 0; index < names.length; index++) {
    text += `${index === 0 ? '' : ','}${names[index] ?? ''}="${escapeLabel(values[index] ?? '')}"`;
  }
  return text;
}

/**
 * Yields the text of a family in chunks, so that a caller with many families can yield to the event loop. A family without
 * series has no text. `le` has the same spelling in both formats (OpenMetrics recommends `1.0`), so that both give one series.
 */
export function* familyText(family: MetricFamily, format: MetricsFormat): Generator<string, void, undefined> {
  let text = headOf(family, format);
  let pending = 0;
  let isEmpty = true;
  const write = family.type === 'histogram' ? histogramWriter(family.name, family.bounds) : undefined;
  for (const series of family.series) {
    isEmpty = false;
    if (write !== undefined) text += write(series as HistogramSeries); // `type` determines the kind of series
    else text += line(family.name, series.labels, (series as Series).value);
    if (++pending < seriesPerChunk) continue;
    yield text;
    text = '';
    pending = 0;
  }
  if (!isEmpty && text !== '') yield text;
}

/** Returns the format that an `Accept` header prefers; `text` by default. */
export function formatFor(accept: string | undefined): MetricsFormat {
  let best: { readonly format: MetricsFormat; readonly quality: number } = { format: 'text', quality: 0 };
  for (const item of (accept ?? '').split(',')) {
    const [type = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase().replaceAll('"', ''));
    const valueOf = (name: string): string | undefined =>
      parameters.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1);
    const version = valueOf('version');
    const format = formatOf(type, version);
    const quality = Number(valueOf('q') ?? 1);
    if (format !== undefined && quality > best.quality) best = { format, quality };
  }
  return best.format;
}

function formatOf(type: string, version: string | undefined): MetricsFormat | undefined {
  if (type === 'application/openmetrics-text') return (version ?? '1.0.0') === '1.0.0' ? 'openmetrics' : undefined;
  if (type === 'text/plain') return (version ?? '0.0.4') === '0.0.4' ? 'text' : undefined;
  return type === '*/*' || type === 'text/*' ? 'text' : undefined;
}

function headOf({ name, type, help }: MetricFamily, format: MetricsFormat): string {
  if (format === 'text') {
    return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n`;
  }
  const family = type === 'counter' ? name.replace(/_total$/, '') : name;
  const unit = /_(seconds|bytes)$/.exec(family)?.[1];
  const unitLine = unit === undefined ? '' : `# UNIT ${family} ${unit}\n`;
  return `# HELP ${family} ${escapeLabel(help)}\n# TYPE ${family} ${type}\n${unitLine}`;
}

function histogramWriter(name: string, bounds: readonly number[]): (series: HistogramSeries) => string {
  const bounded = [...bounds.map(numberText), '+Inf'];
  return ({ labels, counts, sum }) => {
    const separator = labels === '' ? '' : ',';
    let text = '';
    let total = 0;
    for (const [index, bound] of bounded.entries()) {
      total += counts[index] ?? 0;
      text += `${name}_bucket{${labels}${separator}le="${bound}"} ${total}\n`;
    }
    return text + line(`${name}_sum`, labels, sum) + line(`${name}_count`, labels, total);
  };
}

function line(name: string, labels: string, value: number): string {
  return labels === '' ? `${name} ${numberText(value)}\n` : `${name}{${labels}} ${numberText(value)}\n`;
}

function numberText(value: number): string {
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : String(value); // Prometheus parses JavaScript's NaN and exponents
}

const needsEscape = /["\\\n]/;

function escapeLabel(value: string): string {
  if (!needsEscape.test(value)) return value;
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

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
