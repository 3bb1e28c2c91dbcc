import { afterAll, beforeAll, describe, expect, test, type TestContext } from 'vitest';
import { compareAltitudes, disagreementText, runOnBackend, runOnTable } from '../../src/index.ts';
import { labLanes } from '../lab/lab-mode.ts';
import { isInLab, LabRuns, runsOf } from '../lab/lab-runs.ts';

const { signal } = new AbortController();
const modes = labLanes.flat().map((mode) => {
  const runs = runsOf(mode).map((run) => ({ run, title: titleOf(run.scenario) }));
  return { name: `altitude 3 (${mode.name}): real packets do what every scenario says`, runs };
});
let labs: LabRuns | undefined;

// oxlint-disable-next-line no-empty-pattern -- vitest takes nothing but a pattern there
beforeAll(({}, file) => {
  // Those that were asked for by name, if any were.
  const asked = file.tasks.flatMap((suite) => {
    const names = new Set(suite.type === 'suite' ? suite.tasks.filter(isAsked).map(({ name }) => name) : []);
    return modes.find(({ name }) => name === suite.name)?.runs.filter(({ title }) => names.has(title)) ?? [];
  });
  labs = new LabRuns(new Set(asked.map(({ run }) => run).filter(({ scenario }) => isInLab(scenario))), signal);
});

afterAll(() => labs?.[Symbol.asyncDispose]());

// In loops, because names in `each` are shortened, and it is names that tell what was asked for.
for (const { name, runs } of modes) {
  describe(name, () => {
    for (const { title, run } of runs) test(title, (context) => checked(run, context));
  });
}

async function checked(run: Parameters<LabRuns['result']>[0], { skip }: TestContext): Promise<void> {
  const { scenario, mode } = run;
  skip(!isInLab(scenario), scenario.altitudes.because);
  const real = await labs!.result(run);
  if (real.status === 'cannot') return skip(real.because);
  const rendered = await runOnBackend(scenario, mode.harness, {}, signal);
  const disagreements = compareAltitudes(scenario, [runOnTable(scenario), rendered, real.result]);
  expect(disagreementText(disagreements)).toBe('');
}

function isAsked({ mode }: { readonly mode: string }): boolean {
  return mode === 'run' || mode === 'queued';
}

function titleOf({
  id,
  ipFamily,
  name,
}: {
  readonly id: string;
  readonly ipFamily: string;
  readonly name: string;
}): string {
  return `${id} ${ipFamily}: ${name}`;
}
