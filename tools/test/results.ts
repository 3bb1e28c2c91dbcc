import { existsSync, readFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

/** Counts of one suite (a check, or the tests of one package). */
export interface Counts {
  readonly name: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: readonly Skip[];
  readonly failures: readonly Failure[];
}

export interface Skip {
  /** Full name of the test. */
  readonly name: string;
  /** Absent if the reason is part of the name, or of what the test printed. */
  readonly reason?: string | undefined;
  /** Message of a flaky test as it failed, indented lines. */
  readonly said?: string | undefined;
}

export interface Failure {
  /** Full name of the test, or what failed outside of all tests. */
  readonly name: string;
  /** The beginning of what it said, indented lines. */
  readonly said?: string;
  /** Absolute path of the test's file. */
  readonly file?: string;
}

/** A suite that ended. */
export interface SuiteResult extends Counts {
  readonly seconds: number;
}

interface VitestReport {
  readonly success: boolean;
  readonly testResults: readonly VitestFile[];
}

interface VitestFile {
  /** Absolute path. */
  readonly name: string;
  readonly status: string;
  readonly message?: string;
  readonly assertionResults: readonly {
    readonly fullName: string;
    readonly status: string;
    readonly failureMessages?: readonly string[];
    /** Set by a test that says why it is skipped. */
    readonly meta?: { readonly because?: string };
  }[];
}

/** Lines shown of a failed test's message: enough to see the fault at the end of the output. */
const shownLines = 25;

/**
 * Reads vitest's JSON report. A missing or unreadable report, a file that failed outside its tests, and a
 * report without a single test each count as one failure: a runner that ran nothing has not passed.
 */
export function readVitestReport(name: string, path: string): Counts {
  const broken = (why: string): Counts => ({ name, passed: 0, failed: 1, skipped: [], failures: [{ name: why }] });
  if (!existsSync(path)) return broken(`${name} wrote no report`);
  let report: VitestReport;
  try {
    report = JSON.parse(readFileSync(path, 'utf8')) as VitestReport;
  } catch (error) {
    return broken(`${name} wrote a broken report: ${String(error)}`);
  }
  const tests = report.testResults.flatMap((file) => file.assertionResults);
  const failures = report.testResults.flatMap(failuresOf);
  if (tests.length === 0 && failures.length === 0) failures.push({ name: `${name} ran no test` });
  if (!report.success && failures.length === 0) {
    failures.push({ name: `${name} reported failure without naming a test` });
  }
  const passed = tests.filter((test) => test.status === 'passed').length;
  const skipped = tests
    .filter((test) => test.status !== 'passed' && test.status !== 'failed')
    .map(({ fullName, meta }) => ({ name: fullName, reason: meta?.because }));
  return { name, passed, failed: failures.length, skipped, failures };
}

function failuresOf({ name: file, status, message, assertionResults }: VitestFile): readonly Failure[] {
  const failed = assertionResults.filter((test) => test.status === 'failed');
  if (status === 'failed' && failed.length === 0) {
    return [{ name: `${file}: ${message ?? 'failed outside its tests'}`, file }];
  }
  return failed.map(({ fullName, failureMessages = [] }) => {
    const said = stripVTControlCharacters(failureMessages.join('\n')).split('\n').slice(0, shownLines);
    const lines = said.filter((line) => line.trim() !== '').map((line) => `    ${line.slice(0, 240)}`);
    return { name: fullName, said: lines.join('\n'), file };
  });
}

/** One table over all suites, the failures and skips by name, the time of all in seconds, and the closing line. */
export function formatSummary(results: readonly SuiteResult[], seconds: number): string {
  const width = Math.max(...results.map((result) => result.name.length));
  const lines = results.map(
    (result) =>
      `${result.name.padEnd(width)}  ${String(result.passed).padStart(5)} passed ${String(result.failed).padStart(3)} failed ` +
      `${String(result.skipped.length).padStart(3)} skipped ${result.seconds.toFixed(1).padStart(7)} s`,
  );
  for (const result of results) {
    for (const test of grouped(result.skipped)) lines.push(`skipped  ${result.name}: ${test}`);
    for (const { name, said } of result.failures) {
      lines.push(`FAILED   ${result.name}: ${name}`, ...(said === undefined ? [] : [said]));
    }
  }
  const sum = (of: (result: SuiteResult) => number): number => results.reduce((total, result) => total + of(result), 0);
  const counts = [sum((r) => r.passed), sum((r) => r.failed), sum((r) => r.skipped.length)];
  return `${lines.join('\n')}\n\n${minutes(seconds)}\n${counts[0]} passed, ${counts[1]} failed, ${counts[2]} skipped\n`;
}

/** Skips that are named one by one. */
const mostNamed = 20;

/** The skips, with those in one line that share a reason and are too many to be read one by one. */
function grouped(skipped: readonly Skip[]): readonly string[] {
  const groups = Map.groupBy(skipped, ({ name, reason }) => reason ?? name);
  return [...groups.values()].flatMap((group) =>
    group.length > mostNamed ? [`${group.length} tests, the first: ${shown(group[0]!)}`] : group.map(shown),
  );
}

function shown({ name, reason, said }: Skip): string {
  const because = reason === undefined ? '' : ` [${reason}]`;
  return `${name}${because}${said === undefined ? '' : `\n${said}`}`;
}

function minutes(seconds: number): string {
  return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}
