import { markdownTable } from '@switchyard/host';
import type { UpstreamVerdict } from './results.ts';

/** Result of a test with one proxy. `missing`: the run ended before it. */
type TableStatus = 'passed' | 'failed' | 'skipped itself' | 'missing';

export interface TableColumn {
  /** `kube-proxy nftables`, `switchyard nftables`. */
  readonly proxy: string;
  /** Proxy to compare with: a test that fails with it too does not fail the cell. */
  readonly isBaseline: boolean;
  readonly results: Readonly<Record<string, TableStatus>>;
}

/** Upstream's tests by proxy. */
export interface UpstreamTable {
  readonly columns: readonly TableColumn[];
}

export function columnOf(proxy: string, isBaseline: boolean, verdict: UpstreamVerdict): TableColumn {
  const entries = (names: readonly string[], status: TableStatus): readonly (readonly [string, TableStatus])[] =>
    names.map((name) => [name, status]);
  const results = Object.fromEntries([
    ...entries(verdict.passed, 'passed'),
    ...entries(
      verdict.failed.map(({ name }) => name),
      'failed',
    ),
    ...entries(
      verdict.skippedThemselves.map(({ name }) => name),
      'skipped itself',
    ),
    ...entries(verdict.missing, 'missing'),
  ]);
  return { proxy, isBaseline, results };
}

/** Tables of several cells as one; each proxy is named with its cell. */
export function mergedTable(cells: readonly { readonly id: string; readonly table: UpstreamTable }[]): UpstreamTable {
  const columns = cells.flatMap(({ id, table }) =>
    table.columns.map((column) => ({ ...column, proxy: `${column.proxy} in ${id}` })),
  );
  return { columns };
}

/** Whether a baseline failed this test too. */
export function failsInBaseline({ columns }: UpstreamTable, name: string): boolean {
  return columns.some(({ isBaseline, results }) => isBaseline && results[name] === 'failed');
}

/** The table as Markdown: counts, then tests that did not pass everywhere, then the others. */
export function tableMarkdown(table: UpstreamTable): string {
  const { columns } = table;
  const names = [...new Set(columns.flatMap(({ results }) => Object.keys(results)))].sort();
  const isPassed = (name: string): boolean => columns.every(({ results }) => results[name] === 'passed');
  const counts = (['passed', 'failed', 'skipped itself', 'missing'] as const).map((status) => [
    status,
    ...columns.map(({ results }) => String(Object.values(results).filter((one) => one === status).length)),
  ]);
  const row = (name: string): readonly string[] => [
    cellText(name),
    ...columns.map(({ results }) => results[name] ?? 'not run'),
    noteOf(table, name),
  ];
  const proxies = columns.map(({ proxy }) => proxy);
  const parts = [
    '# Upstream tests by proxy',
    markdownTable(['', ...proxies], counts),
    '## Not passed everywhere',
    markdownTable(['test', ...proxies, ''], names.filter((name) => !isPassed(name)).map(row)),
    '## Passed everywhere',
    names
      .filter(isPassed)
      .map((name) => `- ${cellText(name)}`)
      .join('\n'),
  ];
  return `${parts.join('\n\n')}\n`;
}

function noteOf(table: UpstreamTable, name: string): string {
  const fails = table.columns.some(({ isBaseline, results }) => !isBaseline && results[name] === 'failed');
  if (!fails) return '';
  if (failsInBaseline(table, name)) return 'fails with the baseline too';
  return table.columns.some(({ isBaseline }) => isBaseline) ? 'ours alone' : 'no baseline';
}

/** Brackets would be links. */
function cellText(name: string): string {
  return name.replaceAll(/[[\]]/g, String.raw`\$&`);
}
