import type { CheckResult } from '../../model/report-file.ts';
import type { Column } from '../columns.ts';
import { escapeMarkup, tag } from '../markup.ts';
import { cellStatus, type CellStatus, type Matrix, type MatrixCell, type MatrixRow } from '../matrix.ts';

/** Result of one case in one column for one source class. */
export interface GridMark {
  readonly caseId: string;
  readonly column: string;
  readonly family: string;
  readonly status: CellStatus;
  /** Expectations: `drop`, `forward to 10.244.1.5`; protocols may differ. */
  readonly expected: readonly string[];
}

/** A state of the endpoints under one policy, seen by one source class. */
export interface GridCell {
  readonly policy: string;
  readonly source: string;
  /** Marks by column, then by family. Empty: there is no such case. */
  readonly marks: readonly GridMark[];
}

/** All matrix cases of one kind of frontend. */
export interface PolicyGrid {
  /** `clusterIP`, `nodePort`, ... */
  readonly frontend: string;
  readonly policies: readonly string[];
  readonly sources: readonly string[];
  readonly families: readonly string[];
  readonly rows: readonly { readonly state: string; readonly cells: readonly GridCell[] }[];
}

/** A row of the matrix, `matrix/nodePort/Local/ready-remote-only/ipv6`, and the parts of its id. */
interface PlacedRow {
  readonly row: MatrixRow;
  readonly frontend: string;
  readonly policy: string;
  readonly state: string;
  readonly family: string;
}

/** The matrix cases as grids of state by policy by source, one for each kind of frontend. */
export function policyGrids({ groups }: Matrix): readonly PolicyGrid[] {
  const placed = groups
    .flatMap(({ rows }) => rows)
    .flatMap((row): readonly PlacedRow[] => {
      const [kind, frontend, policy, state, ...family] = row.id.split('/');
      if (kind !== 'matrix' || frontend === undefined || policy === undefined || state === undefined) return [];
      return [{ row, frontend, policy, state, family: family.join('/') }];
    });
  return [...Map.groupBy(placed, ({ frontend }) => frontend)].map(([frontend, some]) => gridOf(frontend, some));
}

function gridOf(frontend: string, placed: readonly PlacedRow[]): PolicyGrid {
  const policies = unique(placed.map(({ policy }) => policy));
  const checks = placed.flatMap(({ row }) => row.cells.flatMap(checksOf));
  const sources = unique(checks.map(({ what }) => sourceOf(what)));
  const rows = [...Map.groupBy(placed, ({ state }) => state)].map(([state, some]) => ({
    state,
    cells: policies.flatMap((policy) => {
      const inPolicy = some.filter((one) => one.policy === policy);
      return sources.map((source) => ({ policy, source, marks: marksOf(inPolicy, source) }));
    }),
  }));
  return { frontend, policies, sources, families: unique(placed.map(({ family }) => family)), rows };
}

function marksOf(placed: readonly PlacedRow[], source: string): readonly GridMark[] {
  const columns = placed[0]?.row.cells.length ?? 0;
  return Array.from({ length: columns }, (_, index) => index).flatMap((index) =>
    placed.flatMap(({ row, family }) => {
      const cell = row.cells[index];
      if (cell === undefined) return [];
      const checks = checksOf(cell).filter(({ what }) => sourceOf(what) === source);
      if (checks.length === 0 && cell.rounds.some(({ result }) => result.checks.length > 0)) return [];
      const expected = unique(checks.map((check) => check.expected));
      const mark = { caseId: row.id, column: cell.column.key, family, expected };
      return [{ ...mark, status: markStatus(cell, checks) }];
    }),
  );
}

/** Status of a mark. If the case ran, only the checks of this source count. */
function markStatus(cell: MatrixCell, checks: readonly CheckResult[]): CellStatus {
  if (checks.length === 0) return cellStatus(cell);
  const verdicts = new Set(checks.map(({ isAsExpected }) => isAsExpected));
  if (!verdicts.has(false)) return 'passed';
  const byId = [...Map.groupBy(checks, ({ id }) => id).values()];
  const isSteady = byId.every((some) => new Set(some.map(({ isAsExpected }) => isAsExpected)).size === 1);
  return isSteady ? 'failed' : 'flaky';
}

function checksOf({ rounds }: MatrixCell): readonly CheckResult[] {
  return rounds.flatMap(({ result }) => result.checks);
}

/** The first word of `outside to 198.51.100.7:80/TCP`. */
function sourceOf(what: string): string {
  return what.split(' ', 1)[0] ?? '';
}

function unique(values: readonly string[]): readonly string[] {
  return [...new Set(values)];
}

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
  const heads = policies.map(
    (policy) => `<th scope="colgroup" colspan="${span}" class="first">${escapeMarkup(policy)}</th>`,
  );
  const subheads = sources.map(
    (source, index) => `<th scope="col"${index === 0 ? ' class="first"' : ''}>${escapeMarkup(source)}</th>`,
  );
  const body = rows.map(({ state, cells }) => {
    const fields = cells.map((cell, index) => cellHtml(cell, columns, index % span === 0));
    return `<tr><th scope="row"><button type="button" class="state" data-words="matrix/${escapeMarkup(frontend)} /${escapeMarkup(state)}/">${escapeMarkup(state.replaceAll('-', ' '))}</button></th>${fields.join('')}</tr>`;
  });
  return `<div class="grid"><h3>${escapeMarkup(frontend)}</h3><table><thead><tr><th></th>${heads.join('')}</tr><tr><th scope="col">endpoints</th>${policies.map(() => subheads.join('')).join('')}</tr></thead>
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
