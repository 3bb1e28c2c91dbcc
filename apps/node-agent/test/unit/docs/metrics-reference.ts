import {
  bucketBounds,
  type CollectedDeclaration,
  type MetricDeclaration,
  metricDeclarations,
  type MetricDeclarations,
} from '@switchyard/core';
import { refusedMetrics } from './refused-metrics.ts';
import { markdownTable } from '@switchyard/host';
import { registeredBackends } from '../../../src/backends.ts';

/** The text of docs/reference/metrics.md: every metric, made from the declarations. */
export function metricsReference(): string {
  const { 'kube-proxy': theirs, switchyard: ours } = metricDeclarations;
  return [
    '# Metrics',
    '',
    '<!-- Generated from the declarations in packages/core/src/metrics; see docs/design/metrics.md. Do not edit. -->',
    '',
    'Metrics on `/metrics`. How to scrape them, useful queries and the dashboard: [metrics](../operate/metrics.md).',
    '',
    '## Same as kube-proxy 1.36 to 1.38',
    '',
    'Same name, type, labels and buckets; the help text differs and lacks the `[ALPHA]` of kube-proxy. In the second column the',
    'sets of buckets stand in parentheses.',
    '',
    metricTable(theirs),
    '',
    '## Ours',
    '',
    metricTable(ours),
    '',
    '## Not served',
    '',
    table(
      ['kube-proxy has', 'Why not here'],
      refusedMetrics.map(({ name, since, reason }) => [
        since === undefined ? `\`${name}\`` : `\`${name}\` (from ${since})`,
        reason,
      ]),
    ),
    '',
    '## Buckets',
    '',
    table(
      ['Set', 'Upper bounds in seconds, before +Inf'],
      Object.entries(bucketBounds).map(([name, bounds]) => [name, boundsText(bounds)]),
    ),
    '',
    '## Labels',
    '',
    'Values that are known are there from the start, as 0. `ip_family` is `IPv4` or `IPv6`, and only what the node has.',
    '',
    table(
      ['Metric', 'Label', 'Values'],
      [theirs, ours]
        .flatMap(all)
        .flatMap(([name, { values = {} }]) =>
          Object.entries(values).map(([label, known]) => [
            `\`${name}\``,
            `\`${label}\``,
            known.map((value) => `\`${value}\``).join(', '),
          ]),
        ),
    ),
    '',
  ].join('\n');
}

type Typed = MetricDeclaration & { readonly type: string; readonly path?: CollectedDeclaration['path'] };

function all({ counters, gauges, histograms, collected }: MetricDeclarations): readonly (readonly [string, Typed])[] {
  const typed = (type: string, some: Readonly<Record<string, MetricDeclaration>>): (readonly [string, Typed])[] =>
    Object.entries(some).map(([name, one]) => [name, { ...one, type }]);
  return [
    ...typed('counter', counters),
    ...typed('gauge', gauges),
    ...typed('histogram', histograms),
    ...Object.entries(collected),
  ].sort(([a], [b]) => (a < b ? -1 : 1));
}

function metricTable(declarations: MetricDeclarations): string {
  return table(
    ['Metric', 'Type', 'Labels', 'Meaning'],
    all(declarations).map(([name, { type, buckets, labels, help, difference, isAbsentFirst, set, path }]) => [
      `\`${name}\``,
      buckets === undefined ? type : `${type} (${buckets})`,
      labels.map((label) => `\`${label}\``).join(', '),
      [
        `${help}.`,
        ...(path === undefined ? [] : [`On \`${path}\`.`]),
        ...modesText(set),
        ...(isAbsentFirst === true ? ['Absent until known.'] : []),
        ...(difference === undefined ? [] : [`**Differs:** ${difference}`]),
      ].join(' '),
    ]),
  );
}

function modesText(set: MetricDeclaration['set']): readonly string[] {
  if (set === undefined) return [];
  const modes = registeredBackends().flatMap(({ traits }) => (traits.metricSets.includes(set) ? [traits.name] : []));
  return [`In the ${modes.join(' and ')} ${modes.length === 1 ? 'mode' : 'modes'} only.`];
}

/** Help texts name values such as `<error>`. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return markdownTable(
    head,
    rows.map((cells) => cells.map((cell) => cell.replaceAll('<', '&lt;'))),
  );
}

/** Runs of equal steps in short: `1, 2, ... 59`. */
function boundsText(bounds: readonly number[]): string {
  if (bounds.length <= 20) return bounds.join(', ');
  const parts: string[] = [];
  for (let start = 0; start < bounds.length;) {
    const end = endOfRun(bounds, start);
    const run = bounds.slice(start, end);
    parts.push(run.length > 4 ? `${run.slice(0, 2).join(', ')}, ... ${run.at(-1)}` : run.join(', '));
    start = end;
  }
  return parts.join(', ');
}

/** Index after the last bound that has the distance of the first two. */
function endOfRun(bounds: readonly number[], start: number): number {
  const step = (index: number): number => (bounds[index + 1] ?? NaN) - (bounds[index] ?? NaN);
  let end = start + 1;
  while (end < bounds.length && Math.abs(step(end - 1) - step(start)) < 1e-9) end++;
  return end;
}
