import { type MetricDeclarations, metricDeclarations, refusedMetrics } from '@switchyard/core';
import { fieldOf, meaningOf } from '../config/flags/flag-field.ts';
import { flags } from '../config/flags/table.ts';
import type { Field, Meaning } from '../config/schema/field.ts';
import { kubeProxySchema } from '../config/schema/kube-proxy-fields.ts';
import { countKinds, table } from './markdown.ts';

const begin = '<!-- Counts, made from the code by `nx run node-agent:generate`. Do not edit. -->';
const end = '<!-- End of the counts. -->';

/** The text of docs/kube-proxy-parity.md, which is written by hand, with the counts as they are now between its two marks. */
export function withParityCounts(page: string): string {
  const [before, after] = [page.indexOf(begin), page.indexOf(end)];
  return before < 0 || after < before
    ? `${page}${begin}\n\n${parityCounts()}\n\n${end}\n`
    : `${page.slice(0, before)}${begin}\n\n${parityCounts()}\n\n${page.slice(after)}`;
}

/** How much of kube-proxy's configuration and metrics is here, and how. */
export function parityCounts(): string {
  const theirFlags = flags.filter(({ group }) => group !== 'Switchyard');
  return table(
    ['kube-proxy has', 'Same', 'Better', 'Different', 'Accepted without effect', 'Some values refused', 'Not here'],
    [
      [`${kubeProxySchema.fields.length} [fields](generated/config.md) of its file`, ...settings(fieldsWithMeaning())],
      [
        `${theirFlags.length} [flags](generated/flags.md)`,
        ...settings(theirFlags.map((flag) => ({ meaning: meaningOf(flag), field: fieldOf(flag) }))),
      ],
      metrics(metricDeclarations['kube-proxy']),
    ],
  );
}

interface Setting {
  readonly meaning: Meaning;
  readonly field: Field | undefined;
}

function fieldsWithMeaning(): readonly Setting[] {
  return kubeProxySchema.fields.map((field) => ({ meaning: field.meaning, field }));
}

function settings(all: readonly Setting[]): readonly string[] {
  const { same, better, different, ignored, refused } = countKinds(all.map(({ meaning }) => meaning));
  const ofOthers = all.filter(({ meaning, field }) => meaning.kind === 'ignored' && isForOthers(field)).length;
  return [same, better, different]
    .map(String)
    .concat(`${ignored}, ${ofOthers} of them for other modes`, `${refused}`, '0');
}

/** Other proxy modes, or Windows. */
function isForOthers(field: Field | undefined): boolean {
  return field !== undefined && !field.modes.split(', ').some((mode) => ['all', 'Linux', 'nftables'].includes(mode));
}

function metrics({ counters, gauges, histograms, collected }: MetricDeclarations): readonly string[] {
  const all = [counters, gauges, histograms, collected].flatMap((some) => Object.values(some));
  const different = all.filter(({ difference }) => difference !== undefined).length;
  const groups = `${refusedMetrics.length} names or groups of names`;
  return [
    `[metrics](generated/metrics.md), of which ${all.length} mean something here`,
    `${all.length - different}`,
    '',
    `${different}`,
    '',
    '',
    groups,
  ];
}
