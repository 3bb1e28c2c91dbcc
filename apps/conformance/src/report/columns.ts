import type { CaseResult, ReportFile, RunReport } from '../model/report-file.ts';

/** One proxy in one cell: all its rounds. A column of every matrix. */
export interface Column {
  /** Stable and unique in a report: `iptables-nft/dual`; with the target behind an at sign where the report has several. */
  readonly key: string;
  readonly proxy: string;
  /** The cell, and the target where it matters: `dual`, `dual, cluster`. */
  readonly place: string;
  /** Runs in order of rounds. */
  readonly runs: readonly RunReport[];
  /** Largest number of runs of any case: runs may have different cases. */
  readonly rounds: number;
}

/** The columns of a report, in the order in which they come in it. */
export function columnsOf(report: ReportFile): readonly Column[] {
  const hasTargets = new Set(report.runs.map(({ target }) => target)).size > 1;
  const runsByKey = Map.groupBy(report.runs, (run) => columnKey(run, hasTargets));
  return [...runsByKey].map(([key, runs]) => {
    const [first] = runs;
    const place = first === undefined ? '' : `${first.cell}${hasTargets ? `, ${first.target}` : ''}`;
    return {
      key,
      proxy: first?.proxy.name ?? '',
      place,
      runs: [...runs].sort((a, b) => a.round - b.round || a.startedAt.localeCompare(b.startedAt)),
      rounds: mostFrequent(runs),
    };
  });
}

function mostFrequent(runs: readonly RunReport[]): number {
  const counts = new Map<string, number>();
  for (const { id } of runs.flatMap(({ cases }) => cases)) counts.set(id, (counts.get(id) ?? 0) + 1);
  return [...counts.values()].reduce((most, count) => Math.max(most, count), 0);
}

function columnKey({ proxy, cell, target }: RunReport, hasTargets: boolean): string {
  return `${proxy.name}/${cell}${hasTargets ? `@${target}` : ''}`;
}

/** One round's result of a case. */
export interface RoundResult {
  readonly round: number;
  readonly result: CaseResult;
}

/** Results of each case in a column, in order of rounds. */
export function resultsById(column: Pick<Column, 'runs'>): ReadonlyMap<string, readonly RoundResult[]> {
  const results = column.runs.flatMap((run) => run.cases.map((result) => ({ round: run.round, result })));
  return Map.groupBy(results, ({ result }) => result.id);
}
