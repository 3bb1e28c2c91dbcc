import type { Failure, SuiteResult } from './results.ts';
import type { Suite } from './suites.ts';

export interface EndedSuite {
  readonly suite: Suite;
  readonly result: SuiteResult;
}

/** Failures in more files than this are no accident of a busy machine. */
const mostFiles = 10;

/**
 * Runs a few files with failed tests of real packets again, one after the other, when nothing else runs. A test that then passes is
 * skipped as flaky, with its failure. Nothing runs again if a failure stays anyway: of a check, of a unit test, or of a whole suite.
 */
export async function repeatFailed(
  ended: readonly EndedSuite[],
  run: (suite: Suite) => Promise<SuiteResult>,
): Promise<readonly SuiteResult[]> {
  const failures = ended.flatMap(({ suite, result }) => result.failures.map(({ file }) => ({ suite, file })));
  const isWorthIt =
    failures.every(({ suite, file }) => suite.isRepeated === true && file !== undefined) &&
    new Set(failures.map(({ file }) => file)).size <= mostFiles;
  const results: SuiteResult[] = [];
  for (const { suite, result } of ended) {
    const isRun = isWorthIt && result.failed > 0;
    results.push(isRun ? withSecond(result, await run(alone(suite, result.failures))) : result);
  }
  return results;
}

/** Only the files of the failures. */
function alone(suite: Suite, failures: readonly Failure[]): Suite {
  const files = new Set(failures.flatMap(({ file }) => file ?? []));
  return { ...suite, name: `${suite.name}, again`, command: [...suite.command, ...files] };
}

function withSecond(first: SuiteResult, second: SuiteResult): SuiteResult {
  const reason = 'flaky: failed beside others, passed alone';
  const flaky = first.failures.map(({ name, said }) => ({ name, reason, said }));
  const skippedAgain = new Set(second.skipped.map(({ name }) => name));
  const isPassed = second.failed === 0 && !first.failures.some(({ name }) => skippedAgain.has(name));
  const seconds = first.seconds + second.seconds;
  return isPassed
    ? { ...first, failed: 0, failures: [], skipped: [...first.skipped, ...flaky], seconds }
    : { ...first, seconds };
}
