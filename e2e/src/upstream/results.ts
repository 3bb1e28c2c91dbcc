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
