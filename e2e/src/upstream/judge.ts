import type { ChosenTests } from '../skips/choose-tests.ts';
import type { JunitCase } from './junit.ts';

/** What upstream's tests said of a cell. */
export interface UpstreamVerdict {
  readonly passed: readonly string[];
  readonly failed: readonly { readonly name: string; readonly message: string }[];
  /** Were to run, and found by themselves that they cannot here. */
  readonly skippedThemselves: readonly { readonly name: string; readonly message: string }[];
  /** Were to run, and are not in the report: the run ended before. */
  readonly missing: readonly string[];
}

/** Compares what was to run with the report. What the report tells of tests that were not to run is ginkgo's way to say that it left them out. */
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
