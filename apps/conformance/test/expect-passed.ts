import type { CaseResult } from '../src/model/report-file.ts';
import { failureText, failedChecks } from '../src/report/failures.ts';
import { painter } from '../src/report/texts.ts';

/** Throws an error whose message is the whole report of a case that has not passed: an assertion would print its first words alone. */
export function expectPassed(result: CaseResult): void {
  if (result.status !== 'passed') throw new Error(failureText(result, failedChecks([result]), painter(false)));
}
