import { escapeMarkup, tag } from '../markup.ts';
import { cellMarks, cellStatus } from '../matrix.ts';
import type { CellStatus, Matrix, MatrixCell, MatrixGroup, MatrixRow } from '../matrix.ts';

/** One sign per status, so that colours are not needed, and words for screen readers. */
const signs: Readonly<Record<CellStatus, readonly [glyph: string, spoken: string]>> = {
  passed: ['✓', 'passed'],
  failed: ['✗', 'failed'],
  error: ['!', 'lab error'],
  skipped: ['–', 'skipped'],
  flaky: ['~', 'flaky'],
  none: ['', 'did not run'],
};

/** The filter above the matrix. The script reads and fills it. */
export function filterHtml({ columns, groups }: Matrix): string {
  const rows = groups.flatMap((group) => group.rows);
  const tags = [...new Set(rows.flatMap(({ info }) => info.tags))].sort();
  const chips = [
    ['f', 'failed'],
    ['e', 'error'],
    ['~', 'flaky'],
    ['s', 'skipped'],
    ['p', 'passed'],
    ['d', 'proxies differ'],
  ] as const;
  const isThere = (letter: string): boolean =>
    rows.some((row) => (letter === 'd' ? row.differs : row.cells.some((cell) => cellMarks(cell).includes(letter))));
  const boxes = chips
    .filter(([letter]) => isThere(letter))
    .map(
      ([letter, word]) => `<label class="chip"><input type="checkbox" name="status" value="${letter}">${word}</label>`,
    );
  const options = (values: readonly (readonly [string, string])[]): string =>
    values.map(([value, text]) => tag('option', { value }, escapeMarkup(text))).join('');
  return `<form id="filter" role="search" aria-label="Filter the cases">
<input id="words" type="search" placeholder="Filter by id, title, tag  ( / )" aria-label="Words in id, title or tags">
<fieldset><legend class="hidden">Status</legend>${boxes.join('')}</fieldset>
<select id="tag" aria-label="Tag">${options([['', 'all tags'], ...tags.map((one) => [one, one] as const)])}</select>
<select id="only" aria-label="Proxy">${options([['', 'all proxies'], ...columns.map(({ key }) => [key, key] as const)])}</select>
<button type="reset" data-idle="true">clear</button><output id="shown" aria-live="polite">${rows.length} cases</output>
</form>`;
}

/** The matrix itself: a row per case, a column per proxy, a foldable body per group. A folded group still shows what is bad. */
export function casesHtml(matrix: Matrix): string {
  const hasFlakes = matrix.columns.some(({ rounds }) => rounds > 1);
  const heads = matrix.columns.map(
    ({ proxy, place }) =>
      `<th scope="col"><span>${escapeMarkup(proxy)}<small>${escapeMarkup(place)}</small></span></th>`,
  );
  const flakes = hasFlakes ? '<th scope="col"><span>flaky<small>rounds</small></span></th>' : '';
  const first = matrix.groups.findIndex(({ rows }) => rows.length > 0);
  const bodies = matrix.groups.map((group, index) => groupHtml(group, { hasFlakes, isFirst: index === first }));
  return `<table id="cases" role="grid" aria-label="Cases by proxy; arrow keys move, Enter shows details">
<thead><tr><th scope="col">case</th>${heads.join('')}${flakes}</tr></thead>
${bodies.join('\n')}
</table>`;
}

interface GroupOptions {
  readonly hasFlakes: boolean;
  readonly isFirst: boolean;
}

function groupHtml(group: MatrixGroup, { hasFlakes, isFirst }: GroupOptions): string {
  const name = [group.kind, group.feature].filter(Boolean).join(': ');
  const sums = (group.rows[0]?.cells ?? []).map((_, index) =>
    sumHtml(group.rows.flatMap((row) => row.cells[index] ?? [])),
  );
  const head = `<tr class="group"><th scope="rowgroup"><button type="button" aria-expanded="false">${escapeMarkup(name)} <small>${group.rows.length}</small></button></th>${sums.join('')}${hasFlakes ? '<td></td>' : ''}</tr>`;
  const prefix = `${group.kind}/${group.feature === '' ? '' : `${group.feature}/`}`;
  const rows = group.rows.map((row, index) => rowHtml(row, { hasFlakes, prefix, takesTab: isFirst && index === 0 }));
  return `<tbody>${head}\n${rows.join('\n')}</tbody>`;
}

/** Cell with the passed cases of a group in a column, of those that ran. */
function sumHtml(cells: readonly MatrixCell[]): string {
  const statuses = cells.map(cellStatus);
  const ran = statuses.filter((status) => status !== 'skipped' && status !== 'none').length;
  const passed = statuses.filter((status) => status === 'passed').length;
  const text = ran === 0 ? (statuses.every((status) => status === 'none') ? '' : 'skipped') : `${passed}/${ran}`;
  return `<td${passed < ran ? ' class="bad"' : ''}>${text}</td>`;
}

interface RowOptions {
  readonly hasFlakes: boolean;
  /** Common beginning of the group's ids, left out in the rows. */
  readonly prefix: string;
  readonly takesTab: boolean;
}

function rowHtml({ id, info, cells, differs }: MatrixRow, { hasFlakes, prefix, takesTab }: RowOptions): string {
  const short = id.slice(id.startsWith(prefix) ? prefix.length : id.indexOf('/') + 1);
  const isBad = cells.some((cell) => ['failed', 'error', 'flaky'].includes(cellStatus(cell)));
  const head = `<th scope="row"><span class="line"><span class="id">${escapeMarkup(short)}</span><span class="title">${escapeMarkup(info.title)}</span></span></th>`;
  const marks = cells.map((cell, index) => {
    const status = cellStatus(cell);
    const [glyph, spoken] = signs[status];
    const tabIndex = takesTab && index === 0 ? 0 : -1;
    return `<td class="c-${status}" tabindex="${tabIndex}" aria-label="${spoken}">${glyph}</td>`;
  });
  const odd = cells.reduce((sum, { oddRounds }) => sum + oddRounds.length, 0);
  const ran = cells.reduce((sum, { rounds }) => sum + rounds.length, 0);
  const flakes = hasFlakes ? `<td class="flakes">${odd === 0 ? '' : `${odd} of ${ran}`}</td>` : '';
  const attributes = [
    `data-id="${escapeMarkup(id)}"`,
    `data-tags="${escapeMarkup(info.tags.join(' '))}"`,
    `data-marks="${cells.map(cellMarks).join(' ')}"`,
    ...(differs ? ['data-differs'] : []),
    ...(isBad ? [] : ['hidden']),
  ];
  return `<tr ${attributes.join(' ')}>${head}${marks.join('')}${flakes}</tr>`;
}
