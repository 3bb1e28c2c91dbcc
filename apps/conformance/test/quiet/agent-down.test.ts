import { expect, test } from 'vitest';
import { sequenceCases } from '../../src/cases/sequences/index.ts';
import { backendNames, ownProxy } from '../../src/lab/proxy-program.ts';
import { failureText } from '../../src/report/failure-text.ts';
import { failedChecks } from '../../src/report/failures.ts';
import { painter } from '../../src/report/painter.ts';
import { runCases } from './run-cases.ts';

// The first answer after a start has a bound of 0.61 s, which only a quiet machine can show.

const signal = AbortSignal.timeout(600_000);

test.each(backendNames)('a proxy that was away applies all changes at its start: %s', async (backend) => {
  const program = await ownProxy(backend);
  const all = sequenceCases({ dataplane: program.about.dataplane, cell: 'dual' });
  const cases = all.filter(({ id }) => id.startsWith('sequence/agent-down/'));
  expect(cases.length).toBeGreaterThan(0);
  for (const result of await runCases({ name: 'cdown', program, cases }, signal)) {
    expect(result.status === 'passed' ? '' : failureText(result, failedChecks([result]), painter(false))).toBe('');
  }
});
