import { expect, test } from 'vitest';
import { sequenceCases } from '../../src/cases/sequences/index.ts';
import { backendNames, ownProxy } from '../../src/lab/proxy-program.ts';
import { expectPassed } from '../expect-passed.ts';
import { runCases } from '../run-cases.ts';

// The first answer after a start has a bound of 1 s, which only a quiet machine can show.

const { signal } = new AbortController();

test.each(backendNames)('a proxy that was away applies all changes at its start: %s', async (backend) => {
  const program = await ownProxy(backend);
  const all = sequenceCases({ dataplane: program.about.dataplane, cell: 'dual' });
  const cases = all.filter(({ id }) => id.startsWith('sequence/agent-down/'));
  expect(cases.length).toBeGreaterThan(0);
  for (const result of await runCases({ name: 'cdown', program, cases }, signal)) expectPassed(result);
});
