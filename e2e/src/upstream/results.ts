import { markdownTable } from '@switchyard/host';
import type { ChosenTests } from '../skips.ts';

/** Results of upstream's tests for a cell. */
export interface UpstreamVerdict {
  readonly passed: readonly string[];
  readonly failed: readonly { readonly name: string; readonly message: string }[];
  /** Chosen tests that skipped themselves. */
  readonly skippedThemselves: readonly { readonly name: string; readonly message: string }[];
  /** Chosen tests that are not in the report: the run ended before. */
  readonly missing: readonly string[];
}

/** Compares the chosen tests with the report. Ginkgo reports tests that were not chosen as skipped; they are ignored. */
export function judge(chosen: Pick<ChosenTests, 'run'>, report: readonly JunitCase[]): UpstreamVerdict {
  const byName = new Map(report.filter(({ isTest }) => isTest).map((one) => [one.name, one]));
  const found = chosen.run.flatMap((name) => byName.get(name) ?? []);
  const withStatus = (status: JunitCase['status']): readonly JunitCase[] =>
    found.filter((one) => one.status === status);
  const outside = report.filter(({ isTest, status }) => !isTest && status === 'failed');
  return {
    passed: withStatus('passed').map(({ name }) => name),
    failed: [...withStatus('failed'), ...outside].map(({ name, message }) => ({ name, message })),
    skippedThemselves: withStatus('skipped').map(({ name, message }) => ({ name, message })),
    missing: chosen.run.filter((name) => !byName.has(name)),
  };
}

/** Result of one test in a JUnit report of ginkgo. */
export interface JunitCase {
  /** Without the `[It] ` that ginkgo puts before it. */
  readonly name: string;
  /** `skipped`: not chosen, or the test found by itself that it cannot run here. */
  readonly status: 'passed' | 'failed' | 'skipped';
  /** Message of a failure or a skip in the report, a few lines at most. Empty if there is none. */
  readonly message: string;
  /** Whether it is a test: before and after all tests ginkgo reports what it does there in the same form. */
  readonly isTest: boolean;
}

/** Reads the test cases of a JUnit report. What is no report has none. */
export function parseJunit(xml: string): readonly JunitCase[] {
  return [...xml.matchAll(/<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)].map(([, head = '', body = '']) => {
    const attributes = attributesOf(head);
    const name = attributes['name'] ?? '';
    return {
      name: name.replace(/^\[It\] /, ''),
      status: statusOf(attributes['status'], body),
      message: messageIn(body),
      isTest: name.startsWith('[It] '),
    };
  });
}

function statusOf(status: string | undefined, body: string): JunitCase['status'] {
  if (/<(failure|error)\b/.test(body)) return 'failed';
  if (status === 'skipped' || status === 'pending' || /<skipped\b/.test(body)) return 'skipped';
  return status === undefined || status === 'passed' ? 'passed' : 'failed'; // ginkgo: panicked, timedout, interrupted, aborted
}

function messageIn(body: string): string {
  const [, head = '', text = ''] = /<(?:failure|error|skipped)\b([^>]*?)(?:\/>|>([\s\S]*?)<\/)/.exec(body) ?? [];
  const message = attributesOf(head)['message'] ?? '';
  return [message, unescaped(text).trim().split('\n').slice(0, 5).join('\n')].filter(Boolean).join('\n');
}

function attributesOf(head: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...head.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, key = '', value = '']) => [key, unescaped(value)]),
  );
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' };

function unescaped(text: string): string {
  return text
    .replaceAll(/<!\[CDATA\[([\s\S]*?)\]\]>/g, '$1')
    .replaceAll(/&(?:#(\d+)|#x([\da-f]+)|(\w+));/gi, (whole, decimal?: string, hex?: string, name?: string) => {
      if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
      if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
      return entities[name ?? ''] ?? whole;
    });
}

/**
 * Names of tests out of what `e2e.test --list-tests` prints: one line per test, its place in upstream's sources, a colon, its full name. Other
 * lines are ignored.
 */
export function parseTestList(text: string): readonly string[] {
  return [...text.matchAll(/^\s+\S+:\d+: (\[sig-.*\S)\s*$/gm)].map(([, name = '']) => name);
}

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
