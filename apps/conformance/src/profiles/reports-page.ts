import { markdownCode, markdownTable } from '@switchyard/host';
import { element, escapeMarkup } from '../report/markup.ts';
import type { CaseNote, ConformanceReport, LevelResult } from './conformance-report.ts';
import { type ProfileName, profiles } from './profiles.ts';
import type { SealedReport } from './report-yaml.ts';

/** A report with the name of its file. */
export interface PublishedReport extends SealedReport {
  readonly file: string;
}

const names = Object.keys(profiles) as ProfileName[];

/** Page that shows reports side by side, as Markdown. */
export function reportsPage(reports: readonly PublishedReport[]): string {
  const sortedReports = reports.toSorted((a, b) => titleOf(a.report).localeCompare(titleOf(b.report)));
  const head = ['Implementation', ...names];
  const rows = sortedReports.map(({ file, report }) => [
    `[${titleOf(report)}](${file})`,
    ...names.map((name) => profileText(report, name)),
  ]);
  return `# Conformance reports

<!-- Made by \`switchyard-conformance pages\`. Do not edit. -->

Results of Service proxies with real packets, by [profile](../reference/conformance-profiles.md). Each cell has the required
cases that passed of those that ran, then the extended ones; **bold**: a case failed. [How to add a report](../test/conformance.md#publish-a-report).

${markdownTable(head, rows)}

${sortedReports.map(detailsOf).join('\n')}
${differencesOf(sortedReports)}`;
}

/** As `kube-proxy v1.36.2, nftables`; of a cluster with its version. */
export function titleOf({ implementation: { project, version }, mode, kubernetesVersion }: ConformanceReport): string {
  return `${project} ${version}, ${mode}${kubernetesVersion === 'lab' ? '' : `, on Kubernetes ${kubernetesVersion}`}`;
}

function profileText({ profiles: results }: ConformanceReport, name: ProfileName): string {
  const found = results.find((one) => one.name === name);
  const parts = [levelText(found?.required), levelText(found?.extended, 'extended')].filter((text) => text !== '');
  return parts.join('; ') || 'not run';
}

function levelText(level: LevelResult | undefined, label = ''): string {
  if (level === undefined) return '';
  const { passed, failed, inconclusive } = level.statistics;
  const text = `${passed}/${passed + failed + inconclusive}`;
  return `${label === '' ? '' : `${label} `}${failed > 0 ? `**${text}**` : text}`;
}

function detailsOf({ file, report, seal }: PublishedReport): string {
  const failures = failuresOf(report);
  const { implementation, date, kernel, kubernetesVersion, ipFamilies, reproduce, rounds, duration } = report;
  const place = kubernetesVersion === 'lab' ? 'in a lab' : `on Kubernetes ${kubernetesVersion}`;
  const signature = seal.signature === undefined ? '' : ', signed';
  return `## ${titleOf(report)}

[${implementation.organization}](${implementation.url}), ${date.slice(0, 10)}, ${place}, kernel ${kernel}, IP families ${ipFamilies},
${rounds} round${rounds === 1 ? '' : 's'} in ${duration}${signature} ([report](${file})):

\`\`\`
${reproduce}
\`\`\`

${failures.length === 0 ? 'No case failed.\n' : failureTable(failures)}`;
}

/** Failed cases with their profile and level. */
export function failuresOf({
  profiles: results,
}: ConformanceReport): readonly (CaseNote & { readonly place: string })[] {
  return results.flatMap(({ name, required, extended }) => [
    ...(required?.failed ?? []).map((note) => ({ ...note, place: `${name}, required` })),
    ...(extended?.failed ?? []).map((note) => ({ ...note, place: `${name}, extended` })),
  ]);
}

function failureTable(failures: ReturnType<typeof failuresOf>): string {
  return `${markdownTable(
    ['Failed case', 'Profile', 'What was seen'],
    failures.map((note) => [markdownCode(note.case), note.place, tableText(note.because)]),
  )}\n`;
}

function tableText(text: string): string {
  return text.replaceAll('<', '&lt;');
}

/** Where implementations differ and the API leaves it open. */
function differencesOf(reports: readonly PublishedReport[]): string {
  const byCase = new Map<string, string[]>();
  for (const { report } of reports) {
    for (const id of new Set((report.differences ?? []).map((note) => note.case)))
      byCase.set(id, [...(byCase.get(id) ?? []), titleOf(report)]);
  }
  if (byCase.size === 0) return '';
  const rows = [...byCase].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `## Differences that the API allows

These answer otherwise than the tool expects, where the API leaves it open. That is no failure.

${markdownTable(
  ['Case', 'Implementations'],
  rows.map(([id, who]) => [markdownCode(id), who.join('; ')]),
)}
`;
}

const character = 6.6;
const colours = { success: '#2e7d32', partial: '#ef6c00', failure: '#c62828', none: '#757575' } as const;

/** A badge as SVG: what the implementation passes whole of a profile's required cases. */
export function badge({ profiles: results }: ConformanceReport): string {
  const required = results.flatMap(({ name, required: level }) => (level === undefined ? [] : [{ name, level }]));
  const passed = required.filter(({ level }) => level.result === 'success').map(({ name }) => name);
  const worst =
    (['failure', 'partial', 'success'] as const).find((one) => required.some(({ level }) => level.result === one)) ??
    'none';
  const label = 'Service proxy conformance';
  const value = passed.join(', ') || (worst === 'none' ? 'not run' : 'no whole profile');
  const [left, right] = [label, value].map((text) => Math.round(text.length * character) + 12) as [number, number];
  const box = (x: number, width: number, fill: string): string =>
    element('rect', { x: String(x), width: String(width), height: '20', fill });
  const words = (x: number, text: string): string =>
    element('text', { x: String(x), y: '14', fill: '#fff' }, escapeMarkup(text));
  const frame = {
    xmlns: 'http://www.w3.org/2000/svg',
    width: String(left + right),
    height: '20',
    role: 'img',
    'aria-label': `${label}: ${value}`,
    'font-family': 'Verdana, sans-serif',
    'font-size': '11',
  };
  return `${element('svg', frame, [box(0, left, '#455a64'), box(left, right, colours[worst]), words(6, label), words(left + 6, value)].join(''))}\n`;
}
