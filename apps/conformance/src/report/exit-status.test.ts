import { expect, test } from 'vitest';
import type { CaseResult } from '../model/report-file.ts';
import { aCase, aFailedCheck, anError, aReport, aRun, aSkip } from '../testing/report-builders.ts';
import { exitStatusOf } from './columns.ts';

const passed = aCase();
const failed = aCase({ checks: [aFailedCheck()] });
const skipped = aSkip('a', 'the environment has no SCTP');
const broken = anError('b', 'the API server ended');

test.each<{ when: string; cases: readonly CaseResult[]; status: number }>([
  { when: 'all passed', cases: [passed, passed], status: 0 },
  { when: 'a case was skipped with a reason', cases: [passed, skipped], status: 0 },
  {
    when: 'a check had no verdict, for a reason',
    cases: [aCase({ inconclusive: [{ id: 'a', what: 'a', because: 'rate limited: 7' }] })],
    status: 0,
  },
  { when: 'a case failed', cases: [passed, failed], status: 1 },
  { when: 'the lab failed', cases: [passed, broken], status: 3 },
  { when: 'a case failed and the lab failed', cases: [failed, broken], status: 3 },
  { when: 'a skip has no reason', cases: [passed, aSkip('a', '')], status: 3 },
  { when: 'nothing ran', cases: [], status: 3 },
])('exit status $status when $when', ({ cases, status }) => {
  expect(exitStatusOf(aReport(aRun({ cases })))).toBe(status);
});

test('the worst of several runs counts', () => {
  const runs = [aRun({ cases: [broken] }), aRun({ cases: [failed] }), aRun({ cases: [passed] })];
  expect(exitStatusOf(aReport(...runs))).toBe(3);
  expect(exitStatusOf(aReport(...runs.slice(1)))).toBe(1);
});
