import { amountText } from '../amount-text.ts';
import type { CheckResult, PacketPath } from '../../model/report-file.ts';
import { pathTitles } from '../failure-text.ts';
import { type ErrorGroup, errorGroups, type Failure, roundsText } from '../failures.ts';
import { escapeMarkup, tag } from '../markup.ts';

/** Failures that are open at first; the rest opens on a click. */
const open = 10;

/**
 * Every failure once: the failed checks, and the packet's path by the table and in the kernel beside each other. Then what could not be run, once
 * for each reason.
 */
export function failuresHtml(all: readonly Failure[]): string {
  const failures = all.filter(({ kind }) => kind === 'failed');
  const groups = errorGroups(all);
  const failed =
    failures.length === 0
      ? ''
      : `<section aria-labelledby="failures"><h2 id="failures">Failures <small>${failures.length} failed</small></h2>
${failures.map((failure, index) => failureHtml(failure, index < open)).join('\n')}</section>`;
  const errors =
    groups.length === 0
      ? ''
      : `<section aria-labelledby="errors"><h2 id="errors">Could not be run <small>nothing is known of the proxy there</small></h2>
${groups.map(errorHtml).join('\n')}</section>`;
  return failed + errors;
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
