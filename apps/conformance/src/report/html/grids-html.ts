import { escapeMarkup, tag } from '../markup.ts';
import type { Column } from '../columns.ts';
import type { GridCell, GridMark, PolicyGrid } from '../policy-grid.ts';

/**
 * The matrix cases of each kind of frontend as a grid: endpoint states by policy and source. Each cell holds one mark per proxy
 * (across) and family (down).
 */
export function gridsHtml(grids: readonly PolicyGrid[], columns: readonly Column[]): string {
  if (grids.length === 0) return '';
  const families = [...new Set(grids.flatMap((grid) => grid.families))];
  const across = columns.map(({ proxy, place }) => escapeMarkup(`${proxy} ${place}`)).join(', ');
  const down = families.length > 1 ? `, down: ${families.map(escapeMarkup).join(', ')}` : '';
  return `<section aria-labelledby="policies"><h2 id="policies">Policies</h2>
<p class="soft">In each field, across: ${across}${down}. Point at a mark for what was expected; a click shows its case.</p>
<div class="grids">${grids.map((grid) => gridHtml(grid, columns.length)).join('\n')}</div></section>`;
}

function gridHtml(grid: PolicyGrid, columns: number): string {
  const { frontend, policies, sources, rows } = grid;
  const span = sources.length;
  const heads = policies
    .map((policy) => `<th scope="colgroup" colspan="${span}" class="first">${escapeMarkup(policy)}</th>`)
    .join('');
  const subheads = policies
    .flatMap(() =>
      sources.map(
        (source, index) => `<th scope="col"${index === 0 ? ' class="first"' : ''}>${escapeMarkup(source)}</th>`,
      ),
    )
    .join('');
  const body = rows.map(({ state, cells }) => {
    const fields = cells.map((cell, index) => cellHtml(cell, columns, index % span === 0));
    return `<tr><th scope="row"><button type="button" class="state" data-words="matrix/${escapeMarkup(frontend)} /${escapeMarkup(state)}/">${escapeMarkup(state.replaceAll('-', ' '))}</button></th>${fields.join('')}</tr>`;
  });
  return `<div class="grid"><h3>${escapeMarkup(frontend)}</h3><table><thead><tr><th></th>${heads}</tr><tr><th scope="col">endpoints</th>${subheads}</tr></thead>
<tbody>${body.join('\n')}</tbody></table></div>`;
}

function cellHtml({ policy, source, marks }: GridCell, columns: number, isFirst: boolean): string {
  const attributes = isFirst ? { class: 'first' } : {};
  if (marks.length === 0) return tag('td', attributes);
  const byFamily = [...Map.groupBy(marks, ({ family }) => family).values()].flat();
  const failed = marks.filter(({ status }) => status === 'failed' || status === 'flaky').length;
  const label = `${policy}, from ${source}: ${failed === 0 ? 'as expected' : `${failed} of ${marks.length} not as expected`}`;
  const inner = byFamily.map(markHtml).join('');
  return tag(
    'td',
    attributes,
    `<div class="marks" role="img" aria-label="${escapeMarkup(label)}" style="grid-template-columns:repeat(${columns},11px)">${inner}</div>${wordHtml(marks)}`,
  );
}

function markHtml({ caseId, column, status, expected }: GridMark): string {
  const title = `${column}: ${status}${expected.length === 0 ? '' : `; expected ${expected.join(' or ')}`}\n${caseId}`;
  return tag('i', { class: `c-${status}`, title, 'data-case': caseId, 'data-proxy': column });
}

/** The expectation in one word: `forward`, `drop`, `reject`. Modes and protocols may differ. */
function wordHtml(marks: readonly GridMark[]): string {
  const words = [...new Set(marks.flatMap(({ expected }) => expected.map((text) => text.split(' ', 1)[0] ?? '')))];
  return words.length === 0 ? '' : `<small>${words.map(escapeMarkup).join(', ')}</small>`;
}
