import { expect, test } from 'vitest';
import { sequenceCases } from '../../src/cases/sequences/index.ts';
import { runUnit } from '../../src/engine/run-unit.ts';
import { openLabEnvironment } from '../../src/lab/lab-environment.ts';
import { backendNames, ownProxy } from '../../src/lab/proxy-program.ts';
import { failureText } from '../../src/report/failure-text.ts';
import { failedChecks } from '../../src/report/failures.ts';
import { painter } from '../../src/report/painter.ts';

// The first answer after a start has a bound of 0.61 s, which only a quiet machine can show.

const signal = AbortSignal.timeout(600_000);

test.each(backendNames)('a proxy that was away applies all changes at its start: %s', async (backend) => {
  const program = await ownProxy(backend);
  const all = sequenceCases({ dataplane: program.about.dataplane, cell: 'dual' });
  const cases = all.filter(({ id }) => id.startsWith('sequence/agent-down/'));
  expect(cases.length).toBeGreaterThan(0);
  await using environment = await openLabEnvironment({ name: 'cdown', cell: 'dual', program, cases }, signal);
  const events = { started: () => undefined, progress: () => undefined };
  for (const one of cases) {
    const results = await runUnit({ kind: 'single', settings: '', cases: [one] }, { environment, events }, signal);
    for (const result of results) {
      expect(result.status === 'passed' ? '' : failureText(result, failedChecks([result]), painter(false))).toBe('');
    }
  }
});
