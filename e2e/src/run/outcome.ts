/**
 * How a cell ended. `failed`: tests found a fault. `error`: the cluster failed, nothing is known of the proxy. `skipped`: it cannot run on this
 * machine.
 */
export type CellStatus = 'passed' | 'failed' | 'skipped' | 'error';

/** A cell's result. */
export interface CellOutcome {
  readonly id: string;
  readonly status: CellStatus;
  /** Failures, or why it was skipped, or what went wrong; one line each. Empty when it passed. */
  readonly because: readonly string[];
  /** Counts and tests that skipped themselves. */
  readonly notes: readonly string[];
}

/** Findings of a cell's tests, which steps add to. */
export interface Findings {
  /** One line each, of cases and tests that failed: the proxy is at fault, or the test. */
  readonly failures: string[];
  /** Counts and skips, for the summary. */
  readonly notes: string[];
}

/** Outcome of a cell that was run: first its problems, then the findings of its tests. */
export function outcomeOf(id: string, problems: readonly string[], { failures, notes }: Findings): CellOutcome {
  const status = problems.length > 0 ? 'error' : failures.length > 0 ? 'failed' : 'passed';
  return { id, status, because: [...problems, ...failures], notes };
}

/** Exit status, like the conformance runner's: 0 all passed or skipped with reasons, 1 a test failed, 3 a cluster failed, which wins. */
export function exitStatus(outcomes: readonly Pick<CellOutcome, 'status'>[]): 0 | 1 | 3 {
  if (outcomes.some(({ status }) => status === 'error')) return 3;
  return outcomes.some(({ status }) => status === 'failed') ? 1 : 0;
}

/** The end of a call's output: one line per cell, and why. */
export function summaryLines(outcomes: readonly CellOutcome[]): readonly string[] {
  const counts = (['passed', 'failed', 'skipped', 'error'] as const)
    .map((status) => [outcomes.filter((one) => one.status === status).length, status] as const)
    .filter(([count]) => count > 0)
    .map(([count, status]) => `${count} ${status}`);
  const lines = outcomes.flatMap(({ id, status, because, notes }) => [
    `${status.padEnd(8)} ${id}`,
    ...because.map((line) => `           ${line}`),
    ...notes.map((line) => `           (${line})`),
  ]);
  return [...lines, `e2e: ${counts.join(', ')}`];
}
