import { runUnit } from '../src/engine/run-unit.ts';
import { openLabEnvironment } from '../src/lab/lab-environment.ts';
import type { ProxyProgram } from '../src/lab/proxy-program.ts';
import type { ConformanceCase, FamilyCell } from '../src/model/case.ts';
import type { CaseResult } from '../src/model/report-file.ts';

/** Cases to run one after another in a lab of their own. */
export interface QuietRun {
  /** Of the lab, 1 to 8 characters. */
  readonly name: string;
  readonly program: ProxyProgram;
  /** Families of the cluster. Default: both. */
  readonly cell?: FamilyCell;
  readonly cases: readonly ConformanceCase[];
}

/** Runs cases in a cluster. Returns their results, in the same order. */
export async function runCases(
  { name, program, cell = 'dual', cases }: QuietRun,
  signal: AbortSignal,
): Promise<readonly CaseResult[]> {
  await using environment = await openLabEnvironment({ name, cell, program, cases }, signal);
  const events = { started: () => undefined, progress: () => undefined };
  const results: CaseResult[] = [];
  for (const one of cases) {
    results.push(...(await runUnit({ kind: 'single', settings: '', cases: [one] }, { environment, events }, signal)));
  }
  return results;
}
