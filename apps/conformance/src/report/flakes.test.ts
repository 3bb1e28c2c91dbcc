import { expect, test } from 'vitest';
import type { CaseResult } from '../model/report-file.ts';
import { aCase, aCheck, aFailedCheck, aReport, aRun, aSkip } from '../testing/report-builders.ts';
import { flakeLine, flakesOf } from './flakes.ts';

const passed = aCase({ id: 'a' });
const failed = aCase({ id: 'a', checks: [aFailedCheck()] });
const failedElsewhere = aCase({ id: 'a', checks: [aCheck(), aFailedCheck({ id: 'pod/tcp' })] });
const rounds = (...cases: readonly CaseResult[]) =>
  aReport(...cases.map((one, index) => aRun({ round: index + 1, cases: [one, aCase({ id: 'steady' })] })));

test.each<{ when: string; cases: readonly CaseResult[]; odd: readonly number[] }>([
  { when: 'all rounds passed', cases: [passed, passed, passed], odd: [] },
  { when: 'all rounds failed alike', cases: [failed, failed, failed], odd: [] },
  { when: 'one round failed', cases: [passed, failed, passed], odd: [2] },
  { when: 'one round passed', cases: [failed, failed, passed], odd: [3] },
  { when: 'as many passed as failed', cases: [failed, passed], odd: [1] },
  { when: 'different checks failed', cases: [failed, failed, failedElsewhere], odd: [3] },
  { when: 'one round was skipped', cases: [passed, aSkip('a', 'not run'), passed], odd: [] },
  { when: 'one round was skipped and one failed', cases: [passed, aSkip('a', 'not run'), failed], odd: [3] },
])('when $when, the odd rounds are $odd', ({ cases, odd }) => {
  const { cases: flaky, caseRuns, flakyCaseRuns, rate } = flakesOf(rounds(...cases));
  expect(flaky.flatMap(({ oddRounds }) => oddRounds)).toEqual(odd);
  expect(flaky.every(({ id, column }) => id === 'a' && column === 'nftables/dual')).toBe(true);
  expect({ caseRuns, flakyCaseRuns }).toEqual({ caseRuns: 2 * cases.length, flakyCaseRuns: odd.length });
  expect(rate).toBeCloseTo(odd.length / (2 * cases.length));
});

test('different proxies may differ', () => {
  const report = aReport(aRun({ cases: [passed] }), aRun({ proxy: 'iptables-nft', cases: [failed] }));
  expect(flakesOf(report).cases).toEqual([]);
});

test('the line says how many of how many', () => {
  expect(flakeLine(flakesOf(rounds(passed, failed, passed)))).toBe(
    'flakes: 1 of 6 case runs in 3 rounds (16.67 %), 1 case',
  );
  expect(flakeLine(flakesOf(rounds(passed, passed)))).toBe('flakes: none in 4 case runs in 2 rounds (0 %)');
});
