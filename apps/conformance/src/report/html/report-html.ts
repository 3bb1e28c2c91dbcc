import type { ReportFile, RolloutTimeline, CheckResult, PacketPath } from '../../model/report-file.ts';
import { countsLine, type Column, countsOf, timeCovered } from '../columns.ts';
import { failuresOf, rolloutLine, skipGroups, pathTitles, errorGroups, roundsText } from '../failures.ts';
import type { ErrorGroup, Failure } from '../failures.ts';
import { flakeLine, flakesOf } from '../flakes.ts';
import { casesHtml, filterHtml } from './cases-html.ts';
import { policyGrids, gridsHtml } from './policy-grid.ts';
import { safeSvg } from './safe-svg.ts';
import { styleSheet } from './style-sheet.ts';
import { escapeMarkup, tag } from '../markup.ts';
import { matrixOf, pageData } from '../matrix.ts';
import { pageScript } from '../page-script.generated.ts';
import { amountText, durationText } from '../texts.ts';
import { createHash } from 'node:crypto';

/**
 * The whole report as one self-contained page, light and dark, for screen and print: cards per proxy, the matrix of cases by proxy
 * with a filter, policies as grids, each failure with the packet's path, rolling updates drawn, skips by reason, flakes. Works from
 * `file://` and fetches nothing. `#case=ID&proxy=KEY` shows the details of a case.
 */
export function reportHtml(report: ReportFile): string {
  const matrix = matrixOf(report);
  const body = `<main>
<h1>Service proxy conformance</h1>
${factsHtml(report)}
<p>${escapeMarkup(countsLine(report))}</p>
${cardsHtml(matrix.columns)}
<section aria-labelledby="matrix"><h2 id="matrix">Cases</h2>
${filterHtml(matrix)}
${casesHtml(matrix)}</section>
${gridsHtml(policyGrids(matrix), matrix.columns)}
${failuresHtml(failuresOf(report))}
${rolloutsHtml(matrix.columns)}
${flakesHtml(report)}
${skipsHtml(report)}
</main>
<section id="detail" role="region" aria-label="Details of a case" hidden><button type="button" id="close">close (Esc)</button><div id="detail-body"></div></section>`;
  return pageFrame({
    title: `Conformance: ${matrix.columns.map(({ proxy }) => proxy).join(', ')}`,
    styles: styleSheet(matrix.columns.length),
    body,
    data: pageData(report),
    script: pageScript,
  });
}

export interface PageParts {
  readonly title: string;
  readonly styles: string;
  readonly body: string;
  /** JSON that the script reads from `#data`; undefined: none. */
  readonly data: unknown;
  /** Empty: none. */
  readonly script: string;
}

/**
 * One self-contained page. Its policy forbids the browser to fetch anything, and to run any script other than the given one, even if
 * a report file contains one.
 */
export function pageFrame({ title, styles, body, data, script }: PageParts): string {
  const hash = createHash('sha256').update(script).digest('base64');
  const scripts = script === '' ? "'none'" : `'sha256-${hash}'`;
  const policy = `default-src 'none'; style-src 'unsafe-inline'; script-src ${scripts}; base-uri 'none'; form-action 'none'`;
  const island = data === undefined ? '' : `<script type="application/json" id="data">${scriptJson(data)}</script>\n`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escapeMarkup(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeMarkup(title)}</title>
<style>${styles}</style>
</head>
<body>
${body}
${island}${script === '' ? '' : `<script>${script}</script>\n`}</body>
</html>
`;
}

/** JSON that cannot close its `script` element. */
function scriptJson(data: unknown): string {
  return JSON.stringify(data).replaceAll(
    /[<\u2028\u2029]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A section with a heading; empty if it has no content. `title` and `content` are markup. */
function sectionHtml(id: string, title: string, content: string): string {
  return content === '' ? '' : `<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>${content}</section>`;
}

/** One card per proxy with its counts. A click shows only this proxy. */
export function cardsHtml(columns: readonly Column[]): string {
  return `<div class="cards">${columns.map(cardHtml).join('\n')}</div>`;
}

function cardHtml({ key, proxy, place, runs, rounds }: Column): string {
  const counts = countsOf(runs);
  const { passed, failed, skipped, error } = counts;
  const failures = failed > 0 ? `${failed} failed` : '';
  const [kind, words] =
    error > 0
      ? ['error', [amountText(error, 'lab error'), failures].filter(Boolean).join(', ')]
      : failed > 0
        ? ['failed', failures]
        : ['passed', 'all passed'];
  const verdict = `<span class="verdict is-${kind}">${words}</span>`;
  const shares = (['passed', 'failed', 'error', 'skipped'] as const)
    .filter((status) => counts[status] > 0)
    .map((status) => `<i class="s-${status}" style="flex-grow:${counts[status]}"></i>`);
  const times = rounds > 1 ? `, ${rounds} rounds` : '';
  return `<button type="button" class="card" data-choose="${escapeMarkup(key)}"><b>${escapeMarkup(proxy)} <small>${escapeMarkup(place)}</small></b>
${verdict}<span class="share" aria-hidden="true">${shares.join('')}</span>
<small>${passed} passed${skipped > 0 ? `, ${skipped} skipped` : ''}${times}, ${durationText(timeCovered(runs)).replaceAll(' ', '&nbsp;')}</small></button>`;
}

/** Start, target, kernel, seed and version of the runs, in one line. */
export function factsHtml({ runs, version }: ReportFile): string {
  const unique = (values: readonly string[]): string => [...new Set(values)].join(', ');
  const started = runs.map(({ startedAt }) => startedAt).sort()[0] ?? '';
  const facts = [
    started.replace('T', ' ').replace(/:\d\d(?:\.\d+)?Z$/, ' UTC'),
    `target ${unique(runs.map(({ target }) => target))}`,
    `kernel ${unique(runs.map(({ kernel }) => kernel))}`,
    `seed ${unique(runs.map(({ seed }) => String(seed)))}`,
    `version ${version}`,
  ];
  const commands = new Set(
    runs.flatMap(({ proxy }) => (proxy.command === undefined ? [] : [`${proxy.name}: ${proxy.command}`])),
  );
  const told = [...commands].map((command) => `<br><code>${escapeMarkup(command)}</code>`).join('');
  return `<p class="soft">${escapeMarkup(facts.join(' · '))}${told}</p>`;
}

export function skipsHtml(report: ReportFile): string {
  const groups = skipGroups(report);
  if (groups.length === 0) return '';
  const rows = groups.map(
    ({ reason, count, ids }) =>
      `<tr><td class="number">${count}</td><td>${escapeMarkup(reason)}<details><summary class="soft">${amountText(ids.length, 'case')}</summary>${ids.map(escapeMarkup).join('<br>')}</details></td></tr>`,
  );
  const table = `<table class="plain"><thead><tr><th scope="col">skips</th><th scope="col">reason</th></tr></thead>
<tbody>${rows.join('\n')}</tbody></table>`;
  return sectionHtml('skips', 'Skipped', table);
}

/** Cases whose verdict differs between rounds. */
export function flakesHtml(report: ReportFile): string {
  const flakes = flakesOf(report);
  if (flakes.rounds < 2) return '';
  const rows = flakes.cases.map(({ id, column, verdicts }) => {
    const told = [...Map.groupBy(verdicts, ({ verdict }) => verdict)].map(
      ([verdict, rounds]) => `${escapeMarkup(verdict)} in round ${rounds.map(({ round }) => round).join(', ')}`,
    );
    return `<tr><td>${escapeMarkup(id)}</td><td>${escapeMarkup(column)}</td><td>${told.join('<br>')}</td></tr>`;
  });
  const table =
    rows.length === 0
      ? ''
      : `<table class="plain"><thead><tr><th scope="col">case</th><th scope="col">proxy</th><th scope="col">verdicts</th></tr></thead><tbody>${rows.join('\n')}</tbody></table>`;
  return sectionHtml('flakes', 'Rounds', `<p>${escapeMarkup(flakeLine(flakes))}</p>${table}`);
}

/** All rolling updates, drawn; those that lost something first, the others folded. */
export function rolloutsHtml(columns: readonly Column[]): string {
  const all = columns.flatMap((column) =>
    column.runs.flatMap(({ round, cases }) =>
      cases.flatMap(({ id, rollouts }) => rollouts.map((timeline) => ({ column, round, id, timeline }))),
    ),
  );
  const lossy = all.filter(({ timeline }) => timeline.lost > 0);
  const figures = [...lossy, ...all.filter(({ timeline }) => timeline.lost === 0)].map(rolloutHtml);
  return sectionHtml('rollouts', 'Rolling updates', figures.join('\n'));
}

const noPicture = '<p class="soft">No picture: the report file has none that is made of shapes and text alone.</p>';

interface DrawnRollout {
  readonly column: Column;
  readonly round: number;
  readonly id: string;
  readonly timeline: RolloutTimeline;
}

function rolloutHtml({ column, round, id, timeline }: DrawnRollout): string {
  const isGood = timeline.lost === 0;
  const where = `${id}, ${column.proxy} ${column.place}${column.rounds > 1 ? `, round ${round}` : ''}`;
  const verdict = `<span class="${isGood ? 'ok' : 'fail'}">${escapeMarkup(rolloutLine(timeline))}</span>`;
  const caption = `<strong>${escapeMarkup(timeline.title)}</strong> <span class="soft">${escapeMarkup(where)}</span> ${verdict}`;
  return `<figure data-rollout="${escapeMarkup(`${column.key} ${id}`)}"><details class="rollout"${isGood ? '' : ' open'}><summary><figcaption>${caption}</figcaption></summary>
<div class="picture">${safeSvg(timeline.svg ?? '') ?? noPicture}</div></details></figure>`;
}

/** Failures that are open at first; the rest opens on a click. */
const open = 10;

/**
 * Every failure once: the failed checks, and the packet's path by the table and in the kernel beside each other. Then what could not be run, once
 * for each reason.
 */
export function failuresHtml(all: readonly Failure[]): string {
  const failures = all.filter(({ kind }) => kind === 'failed');
  const groups = errorGroups(all);
  const failed = failures.map((failure, index) => failureHtml(failure, index < open));
  const errors = groups.map(errorHtml);
  return [
    sectionHtml('failures', `Failures <small>${failures.length} failed</small>`, failed.join('\n')),
    sectionHtml('errors', 'Could not be run <small>nothing is known of the proxy there</small>', errors.join('\n')),
  ].join('');
}

function failureHtml(failure: Failure, isOpen: boolean): string {
  const { column, result, checks } = failure;
  const rounds = roundsText(failure);
  const where = `${column.proxy} ${column.place}${rounds === '' ? '' : `, ${rounds}`}`;
  const because = (result.because ?? '') === '' ? '' : `<p><strong>${escapeMarkup(result.because ?? '')}</strong></p>`;
  const body = `<div class="failure-body">${because}${checks.map(checkHtml).join('\n')}</div>`;
  const attributes = { class: 'failure', 'data-case': result.id, 'data-proxy': column.key };
  return tag(
    'article',
    attributes,
    `<details${isOpen ? ' open' : ''}><summary><h3>${escapeMarkup(result.id)}</h3> <span class="is-failed">failed</span> <span class="soft">${escapeMarkup(where)}</span></summary>
<p>${escapeMarkup(result.title)} ${linkHtml(failure, 'all proxies')}</p><p class="soft">${escapeMarkup(result.why)}</p>${body}</details>`,
  );
}

function errorHtml({ column, because, failures }: ErrorGroup): string {
  const ids = failures.map((failure) => `<li>${linkHtml(failure, failure.result.id)}</li>`);
  const count = amountText(failures.length, 'case');
  return `<article class="failure is-lab"><details${failures.length > 8 ? '' : ' open'}><summary><h3>${escapeMarkup(because)}</h3> <span class="soft">${escapeMarkup(`${column.proxy} ${column.place}, ${count}`)}</span></summary><ul>${ids.join('')}</ul></details></article>`;
}

/** Leads to the details of the case with all proxies. */
function linkHtml({ result, column }: Failure, text: string): string {
  const part = (value: string): string => encodeURIComponent(value.toWellFormed()).replaceAll('%2F', '/');
  const href = `#case=${part(result.id)}&proxy=${part(column.key)}`;
  return tag('a', { href }, escapeMarkup(text));
}

function checkHtml(check: CheckResult): string {
  const because =
    check.because.length === 0 ? '' : `<dt>because</dt><dd>${escapeMarkup(check.because.join('\n'))}</dd>`;
  return `<dl class="check"><dt>check</dt><dd>${escapeMarkup(check.what)} <small>${escapeMarkup(check.id)}</small></dd>
<dt>expected</dt><dd>${escapeMarkup(check.expected)}</dd><dt>observed</dt><dd class="not-expected">${escapeMarkup(check.observed)}</dd>${because}</dl>
${check.path.length === 0 ? '' : `<div class="paths">${check.path.map(pathHtml).join('')}</div>`}`;
}

function pathHtml({ run, lines }: PacketPath): string {
  const steps = lines.map((line) => `<li>${escapeMarkup(line)}</li>`).join('');
  const body = lines.length === 0 ? '<p class="soft">Nothing is known of it.</p>' : `<ol class="mono">${steps}</ol>`;
  return `<div class="path"><h4>${pathTitles[run]}</h4>${body}</div>`;
}
