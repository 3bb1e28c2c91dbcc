import { markdownCode, markdownTable } from '@switchyard/host';
import { gateRows } from './gate-rows.ts';
import { httpRows } from './http-rows.ts';
import { lifecycleRows } from './lifecycle-rows.ts';
import { metricRows } from './metric-rows.ts';
import { ownRows } from './own-rows.ts';
import { comparedReleases, countStandings, type ParityRow, releaseText, standings } from './row.ts';
import { serviceRows } from './service-rows.ts';
import { fieldRows, flagRows } from './setting-rows.ts';
import { sources } from './sources.ts';

/** The text of docs/reference/kube-proxy-parity.md, made from the tables in this folder. */
export function parityPage(): string {
  return `# Beside kube-proxy 1.36 to 1.38

<!-- Generated from apps/node-agent/test/unit/docs/parity by \`nx run node-agent:generate\`. Do not edit. -->

One by one: the HTTP answers, the behaviour, the flags, fields, metrics and feature gates of kube-proxy on Linux, and the
agent's standing in each. A mode is compared with kube-proxy's mode of the same name. Where the agent's modes answer packets
differently: [the backends beside each other](../design/backends.md).

The column **kube-proxy** names the releases that have the subject of the row. The agent behaves the same with every
release of Kubernetes. The column **Here** has one of five values:

| Here | Meaning |
|---|---|
| same | as in kube-proxy; the note may say how |
| better | as in kube-proxy, and more |
| different | present, with the difference in the note |
| no effect | accepted, and checked where kube-proxy checks it in the same mode; another value than the default is one line in the log |
| missing | refused or not served, with the reason |

${markdownTable(
  ['Kubernetes', 'State', 'Compared with'],
  sources.map(({ release, state, read }) => [release, state, read]),
)}

## Counts

${countTable()}

## Surfaces

${rowTable('Surface', httpRows)}

## Lifecycle

${rowTable('When', lifecycleRows)}

## Services

${rowTable('What', serviceRows)}

## Flags

All flags with their defaults and meaning: [flags](flags.md).

${listedAndTable('Flag', flagRows)}

## Fields

All fields of \`KubeProxyConfiguration\` with their defaults and meaning: [fields](config.md).

${listedAndTable('Field', fieldRows)}

## Metrics

All metrics with their labels and meaning: [metrics](metrics.md).

${listedAndTable('Metric', metricRows)}

## Feature gates

The agent accepts the gates of 1.26 to 1.38; gates of other components have no effect
([all gates](config.md#feature-gates)). \`-\`: the release has no such gate.

${markdownTable(
  ['Gate', ...comparedReleases, 'Here'],
  gateRows.map(({ name, states, effect }) => [
    markdownCode(name),
    ...comparedReleases.map((release) => states[release]),
    effect,
  ]),
)}

## Only here

${markdownTable(
  ['What', 'How'],
  ownRows.map(({ what, how }) => [what, how]),
)}
`;
}

/** Every table with standings, by its link on the page. */
export const parityTables: readonly (readonly [string, readonly ParityRow[]])[] = [
  ['[surfaces](#surfaces)', httpRows],
  ['[lifecycle](#lifecycle)', lifecycleRows],
  ['[Services](#services)', serviceRows],
  ['[flags](#flags)', flagRows],
  ['[fields](#fields)', fieldRows],
  ['[metrics](#metrics), single or in groups', metricRows],
];

function countTable(): string {
  return markdownTable(
    ['Rows', 'All', ...standings],
    parityTables.map(([name, rows]) => [name, `${rows.length}`, ...countStandings(rows).map(String)]),
  );
}

function rowTable(head: string, rows: readonly ParityRow[]): string {
  return markdownTable(
    [head, 'kube-proxy', 'Here', 'Note'],
    rows.map((row) => [row.what, releaseText(row), row.standing, row.note]),
  );
}

/** Rows without any difference as a list, the others as a table. */
function listedAndTable(head: string, rows: readonly ParityRow[]): string {
  const isPlain = (row: ParityRow): boolean =>
    row.standing === 'same' && row.note === '' && row.since === undefined && row.until === undefined;
  const plain = rows.filter(isPlain).map(({ what }) => what);
  const others = rows.filter((row) => !isPlain(row));
  return `Same in 1.36, 1.37 and 1.38:\n${wrapped(plain)}.\n\n${rowTable(head, others)}`;
}

/** A list in lines of at most 120 characters. */
function wrapped(names: readonly string[]): string {
  const lines: string[] = [];
  for (const [index, name] of names.entries()) {
    const word = index < names.length - 1 ? `${name},` : name;
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length < 120) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines.join('\n');
}
