import type { ReportFile, RunReport } from '../model/report-file.ts';

/**
 * One report of several. Runs of the same proxy, cell and target in different files are further rounds, numbered on in the order
 * of the files. The version is that of the first.
 */
export function mergeReports(reports: readonly ReportFile[]): ReportFile {
  const runs = reports.reduce<readonly RunReport[]>((merged, report) => [...merged, ...numberedOn(merged, report)], []);
  return { schema: 'switchyard-conformance/2', version: reports[0]?.version ?? '', runs };
}

function numberedOn(merged: readonly RunReport[], report: ReportFile): readonly RunReport[] {
  return report.runs.map((run) => {
    const before = merged.filter((other) => sameColumn(run, other)).map(({ round }) => round);
    return { ...run, round: run.round + Math.max(0, ...before) };
  });
}

function sameColumn(a: RunReport, b: RunReport): boolean {
  return a.proxy.name === b.proxy.name && a.cell === b.cell && a.target === b.target;
}
