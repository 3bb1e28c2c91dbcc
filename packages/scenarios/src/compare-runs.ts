import { type RunKind, runKinds, type Scenario } from './scenario.ts';
import type { RunResult, StepResult } from './verdict.ts';

/** One step whose result in a run is missing or not as expected. */
export interface Disagreement {
  /** `file.yaml:line`. */
  readonly where: string;
  readonly step: string;
  readonly expected: string;
  /** Observation of each run; undefined: it did not check this step. */
  readonly observed: ReadonlyMap<RunKind, string | undefined>;
  /** First wrong run in the order of `runKinds`; the fault is there, because the runs before it are right. */
  readonly firstWrong: RunKind;
  /** Why, in the words of `explain`, and of the run at fault. */
  readonly because: readonly string[];
}

/**
 * Returns every step in which a run disagrees with the expectation. Includes steps that `table` checked and a later
 * run did not check. Results may come in any order.
 */
export function compareRuns(scenario: Scenario, results: readonly RunResult[]): readonly Disagreement[] {
  const ordered = runKinds.flatMap((run) => results.filter((result) => result.run === run));
  const lines = new Set(ordered.flatMap(({ steps }) => steps.map(({ line }) => line)));
  return [...lines].sort((a, b) => a - b).flatMap((line) => disagreementsAt(scenario, ordered, line));
}

/** All disagreements as text; empty when there is none. */
export function disagreementText(disagreements: readonly Disagreement[]): string {
  return disagreements.map(textOf).join('\n');
}

function disagreementsAt(scenario: Scenario, ordered: readonly RunResult[], line: number): readonly Disagreement[] {
  const seen = ordered
    .map(({ run, steps }) => ({ run, result: steps.find((step) => step.line === line) }))
    .filter(({ run, result }) => result !== undefined || isDue(ordered, run, line));
  const wrong = seen.find(({ result }) => result?.isAsExpected !== true);
  const named = seen.find(({ result }) => result !== undefined)?.result;
  if (wrong === undefined || named === undefined) return [];
  return [
    {
      where: `${scenario.id}.yaml:${line} (${scenario.ipFamily})`,
      step: named.step,
      expected: named.expected,
      observed: new Map(seen.map(({ run, result }) => [run, result?.observed])),
      firstWrong: wrong.run,
      because: reasons(ordered, wrong.result, line),
    },
  ];
}

/** Other runs must check every step that the table checks. The table ignores restarts. */
function isDue(ordered: readonly RunResult[], run: RunKind, line: number): boolean {
  const table = ordered.find((result) => result.run === 'table');
  return run !== 'table' && table?.steps.some((step) => step.line === line) === true;
}

function reasons(ordered: readonly RunResult[], wrong: StepResult | undefined, line: number): readonly string[] {
  const explained = ordered
    .filter(({ run }) => run === 'table')
    .flatMap(({ steps }) => steps.find((step) => step.line === line)?.because ?? []);
  return [...explained, ...(wrong?.because ?? []).filter((text) => !explained.includes(text))];
}

function textOf(one: Disagreement): string {
  const seen = [...one.observed].map(([run, observed]) => `  ${`${run}:`.padEnd(10)} ${observed ?? 'did not look'}`);
  return [
    `${one.where}: ${one.step}`,
    `  first wrong run: ${one.firstWrong}`,
    `  expected: ${one.expected}`,
    ...seen,
    ...one.because.map((text) => `  because ${text}`),
  ].join('\n');
}
