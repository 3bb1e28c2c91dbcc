import type { ChosenTests } from '../skips/choose-tests.ts';
import type { JunitCase } from './junit.ts';

/** Results of upstream's tests for a cell. */
export interface UpstreamVerdict {
  readonly passed: readonly string[];
  readonly failed: readonly { readonly name: string; readonly message: string }[];
  /** Chosen tests that skipped themselves. */
  readonly skippedThemselves: readonly { readonly name: string; readonly message: string }[];
  /** Chosen tests that are not in the report: the run ended before. */
  readonly missing: readonly string[];
}

/** Compares the chosen tests with the report. Ginkgo reports tests that were not chosen as skipped; they are ignored. */
export function judge(chosen: Pick<ChosenTests, 'run'>, report: readonly JunitCase[]): UpstreamVerdict {
  const byName = new Map(report.filter(({ isTest }) => isTest).map((one) => [one.name, one]));
  const found = chosen.run.flatMap((name) => byName.get(name) ?? []);
  const withStatus = (status: JunitCase['status']): readonly JunitCase[] =>
    found.filter((one) => one.status === status);
  const outside = report.filter(({ isTest, status }) => !isTest && status === 'failed');
  return {
    passed: withStatus('passed').map(({ name }) => name),
    failed: [...withStatus('failed'), ...outside].map(({ name, message }) => ({ name, message })),
    skippedThemselves: withStatus('skipped').map(({ name, message }) => ({ name, message })),
    missing: chosen.run.filter((name) => !byName.has(name)),
  };
}
