import { escapeMarkup } from '../markup.ts';
import type { PageCase, PageCell, PageCheck, PageData } from '../matrix.ts';

/**
 * Details of a case when its cell is chosen: all columns side by side. The `.slot` is for the failure that is already on the page.
 * Undefined: there is no such case.
 */
export function detailHtml(data: PageData, caseId: string, chosen: string): string | undefined {
  if (!Object.hasOwn(data.cases, caseId)) return undefined;
  const found = data.cases[caseId];
  if (found === undefined) return undefined;
  const tags = found.tags.map((tag) => `<li>${escapeMarkup(tag)}</li>`).join('');
  return `<h2>${escapeMarkup(caseId)}</h2>
<p>${escapeMarkup(found.title)} <span class="soft">${escapeMarkup(found.why)}</span></p><ul class="tags">${tags}</ul><div class="slot"></div>
${table(data, found, chosen)}`;
}

function table(data: PageData, found: PageCase, chosen: string): string {
  // Columns that did not run the case are left out.
  const shown = data.columns.flatMap((column, index) => {
    const cell = found.cells[index];
    return cell === null || cell === undefined ? [] : [{ column, cell }];
  });
  const cells = shown.map(({ cell }) => cell);
  const heads = shown.map(({ column: { key, proxy, place }, cell }) => {
    const isChosen = key === chosen ? ' class="chosen"' : '';
    return `<th scope="col"${isChosen}>${escapeMarkup(proxy)} <small>${escapeMarkup(place)}</small>${outcome(cell)}</th>`;
  });
  const rows = checkIds(cells).map((id) => row(data, cells, id));
  const reasons = reasonRow(data, cells);
  return `<div class="wide"><table class="checks"><thead><tr><th scope="col">check</th><th scope="col">expected</th>${heads.join('')}</tr></thead>
<tbody>${reasons}${rows.join('\n')}</tbody></table></div>`;
}

/** Status, duration and rounds of a column. */
function outcome(cell: PageCell): string {
  const seconds = (cell.duration / 1000).toFixed(1);
  const rounds = cell.rounds === '' ? '' : `<small>${escapeMarkup(cell.rounds)}</small>`;
  const word = `<span class="is-${cell.status}">${cell.status}</span>`;
  return `<span class="outcome">${word} in ${seconds} s</span>${rounds}`;
}

function reasonRow(data: PageData, cells: readonly PageCell[]): string {
  if (cells.every((cell) => cell.because < 0)) return '';
  const texts = cells.map((cell) => `<td>${escapeMarkup(data.strings[cell.because] ?? '')}</td>`);
  return `<tr><th scope="row">reason</th><td></td>${texts.join('')}</tr>`;
}

/** Ids of checks: first the failed ones, then those with different observations. */
function checkIds(cells: readonly PageCell[]): readonly string[] {
  const checks = cells.flatMap((cell) => cell.checks);
  const rankOf = ({ id, ok }: PageCheck): number => {
    const seen = new Set(checks.filter((one) => one.id === id).map(({ observed }) => observed));
    return ok === 0 ? 0 : seen.size > 1 ? 1 : 2;
  };
  const ranks = new Map<string, number>();
  for (const check of checks) ranks.set(check.id, Math.min(ranks.get(check.id) ?? 2, rankOf(check)));
  return [...ranks].sort(([, a], [, b]) => a - b).map(([id]) => id);
}

function row(data: PageData, cells: readonly PageCell[], id: string): string {
  const checks = cells.map((cell) => cell.checks.find((check) => check.id === id));
  const known = checks.filter((check) => check !== undefined);
  const textOf = (index: number | undefined): string => escapeMarkup(data.strings[index ?? -1] ?? '');
  const expected = new Set(known.map((check) => check.expected));
  const common = expected.size === 1 ? textOf([...expected][0]) : '<span class="soft">differs by mode</span>';
  const texts = checks.map((check) => observed(check, textOf, expected.size === 1));
  return `<tr><th scope="row">${textOf(known[0]?.what)} <small>${escapeMarkup(id)}</small></th><td>${common}</td>${texts.join('')}</tr>`;
}

/** Cell of an observation; only a check mark if it is exactly as expected. */
function observed(check: PageCheck | undefined, textOf: (index: number) => string, isCommon: boolean): string {
  if (check === undefined) return '<td class="soft">not looked at</td>';
  const text = textOf(check.observed);
  if (check.ok === 0) {
    const expected = isCommon ? '' : `<br><small>expected ${textOf(check.expected)}</small>`;
    return `<td class="not-expected"><b aria-label="not as expected">✗</b> ${text}${expected}</td>`;
  }
  const isPlain = isCommon && check.observed === check.expected;
  return `<td class="as-expected"${isPlain ? ` title="${text}"` : ''}><b aria-label="as expected">✓</b>${isPlain ? '' : ` ${text}`}</td>`;
}
