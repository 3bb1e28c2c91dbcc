import { expect, test } from 'vitest';
import { aCase, aRun, builtAt } from '../testing/report-builders.ts';
import { PartialReport } from './partial-report.ts';

const { cases: _, duration: __, ...about } = aRun();
const run = { proxy: 'nftables', cell: 'dual', round: 1 } as const;

test('has the cases that have ended, and is a report like others', () => {
  const partial = new PartialReport();
  partial.note({ kind: 'runStarted', run, caseIds: ['a', 'b'], about });
  expect(partial.report()).toBeUndefined();
  const startedAt = new Date(Date.parse(builtAt) + 5000).toISOString();
  partial.note({ kind: 'caseEnded', run, lane: 'l', result: aCase({ id: 'a', startedAt }) });
  partial.note({ kind: 'runStarted', run: { ...run, round: 2 }, caseIds: ['a', 'b'], about: { ...about, round: 2 } });
  expect(partial.report()).toMatchObject({
    schema: 'switchyard-conformance/2',
    runs: [{ ...about, duration: 5000, cases: [{ id: 'a', status: 'passed' }] }],
  });
});

test('a run that is not reported has none', () => {
  const partial = new PartialReport();
  partial.note({ kind: 'runStarted', run, caseIds: ['a'] });
  partial.note({ kind: 'caseEnded', run, lane: 'l', result: aCase({ id: 'a' }) });
  expect(partial.report()).toBeUndefined();
});
