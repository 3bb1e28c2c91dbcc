import { amountText } from './texts.ts';
import type { CaseResult, ReportFile } from '../model/report-file.ts';
import { columnsOf, type RoundResult, resultsById } from './columns.ts';

/** A case of one column whose verdict is not the same in all rounds. */
export interface FlakyCase {
  readonly column: string;
  readonly id: string;
  /** One word or list per round: `passed`, `skipped`, or the failed checks. In order of rounds. */
  readonly verdicts: readonly { readonly round: number; readonly verdict: string }[];
  /** Rounds whose verdict is not the most frequent one; of equally frequent ones the better counts as usual. */
  readonly oddRounds: readonly number[];
}

/** Stability of verdicts over several rounds. */
export interface FlakeSummary {
  /** Largest number of runs of any case. With one round nothing can be flaky. */
  readonly rounds: number;
  readonly caseRuns: number;
  /** Case runs in rounds whose verdict was not the usual one of the case. */
  readonly flakyCaseRuns: number;
  /** `flakyCaseRuns / caseRuns`, 0 to 1; 0 if nothing ran. */
  readonly rate: number;
  readonly cases: readonly FlakyCase[];
}

/**
 * Cases whose verdict differs between rounds of the same proxy and cell. Two failures in different checks differ, too. A round that
 * skipped a case says nothing of it, as after the end of a `--fail-fast`.
 */
export function flakesOf(report: ReportFile): FlakeSummary {
  const columns = columnsOf(report);
  const cases = columns.flatMap((column) =>
    [...resultsById(column)].flatMap(([id, rounds]) => flakyCase(column.key, id, rounds)),
  );
  const caseRuns = report.runs.reduce((sum, run) => sum + run.cases.length, 0);
  const flakyCaseRuns = cases.reduce((sum, { oddRounds }) => sum + oddRounds.length, 0);
  return {
    rounds: Math.max(0, ...columns.map(({ rounds }) => rounds)),
    caseRuns,
    flakyCaseRuns,
    rate: caseRuns === 0 ? 0 : flakyCaseRuns / caseRuns,
    cases,
  };
}

function flakyCase(column: string, id: string, rounds: readonly RoundResult[]): readonly FlakyCase[] {
  const verdicts = rounds.map(({ round, result }) => ({ round, verdict: verdictText(result) }));
  const run = verdicts.filter(({ verdict }) => verdict !== 'skipped');
  const counts = new Map<string, number>();
  for (const { verdict } of run) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  if (counts.size < 2) return [];
  const [usual] = [...counts].sort(([a, countA], [b, countB]) => countB - countA || rank(a) - rank(b))[0] ?? [''];
  const oddRounds = run.filter(({ verdict }) => verdict !== usual).map(({ round }) => round);
  return [{ column, id, verdicts, oddRounds }];
}

/** A verdict in words; equal words mean the same verdict. A lab error's text differs from time to time and is left out. */
function verdictText({ status, checks }: CaseResult): string {
  if (status !== 'failed') return status;
  const failed = checks.filter(({ isAsExpected }) => !isAsExpected).map(({ id }) => id);
  return `failed ${[...new Set(failed)].sort().join(', ')}`.trim();
}

/** The better verdict first. */
function rank(verdict: string): number {
  const index = ['passed', 'error'].indexOf(verdict);
  return index < 0 ? 2 : index;
}

/** `3 of 15,200 case runs flaky (0.02 %)`, or that nothing was. */
export function flakeLine({ rounds, caseRuns, flakyCaseRuns, rate, cases }: FlakeSummary): string {
  const runs = `${caseRuns.toLocaleString('en')} case runs in ${rounds} rounds`;
  if (cases.length === 0) return `flakes: none in ${runs} (0 %)`;
  return `flakes: ${flakyCaseRuns} of ${runs} (${(rate * 100).toFixed(2)} %), ${amountText(cases.length, 'case')}`;
}
