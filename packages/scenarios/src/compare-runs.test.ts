import { describe, expect, test } from 'vitest';
import { compareRuns, disagreementText } from './compare-runs.ts';
import { loadScenario } from './load-scenario.ts';
import type { RunKind, Scenario } from './scenario.ts';
import type { RunResult, StepResult } from './verdict.ts';

const [scenario] = loadScenario(
  'made-up',
  `name: n
why: w
given:
  services: [{ name: a/b, clusterIP: 10.96.0.10, ports: [{ port: 80 }] }]
steps:
  - { from: pod, to: '10.96.0.10:80/TCP', expect: reject }
`,
) as readonly [Scenario];

function saw(run: RunKind, ...observed: readonly (string | undefined)[]): RunResult {
  const steps = observed.flatMap((text, index): readonly StepResult[] =>
    text === undefined
      ? []
      : [
          {
            line: 6 + index,
            step: 'pod to 10.96.0.10:80/TCP',
            expected: 'reject',
            observed: text,
            isAsExpected: text === 'reject',
            because: [run === 'table' ? 'the table has reasons' : `${run} looked`],
          },
        ],
  );
  return { run, steps };
}

describe('compareRuns', () => {
  test.each([
    {
      title: 'nothing when all runs see what is expected',
      results: [saw('table', 'reject'), saw('rendering', 'reject'), saw('packets', 'reject')],
      faults: [],
    },
    {
      title: 'the lab when only real packets go elsewhere',
      results: [saw('table', 'reject'), saw('rendering', 'reject'), saw('packets', 'drop')],
      faults: ['packets'],
    },
    {
      title: 'the rendering when it and all above it are wrong',
      results: [saw('packets', 'drop'), saw('table', 'reject'), saw('rendering', 'drop')],
      faults: ['rendering'],
    },
    {
      title: 'the table when all agree with each other but not with the file',
      results: [saw('table', 'drop'), saw('rendering', 'drop'), saw('packets', 'drop')],
      faults: ['table'],
    },
    {
      title: 'the table when it is wrong and real packets do the right thing',
      results: [saw('table', 'drop'), saw('packets', 'reject')],
      faults: ['table'],
    },
    {
      title: 'a run that did not look where the table did',
      results: [saw('table', 'reject'), saw('rendering', undefined), saw('packets', 'reject')],
      faults: ['rendering'],
    },
    {
      title: 'every step that is wrong, on its own',
      results: [saw('table', 'reject', 'reject'), saw('rendering', 'drop', 'reject'), saw('packets', 'reject', 'pass')],
      faults: ['rendering', 'packets'],
    },
    {
      title: 'a step that only the later runs have, such as a restart',
      results: [saw('table', 'reject', undefined), saw('rendering', 'reject', '3 writes')],
      faults: ['rendering'],
    },
  ])('names $title', ({ results, faults }) => {
    expect(compareRuns(scenario, results).map(({ firstWrong }) => firstWrong)).toEqual(faults);
  });

  test('reports file and line, what each run saw, and why the table decided so', () => {
    const results = [saw('table', 'reject'), saw('rendering', 'reject'), saw('packets', '3 x timeout')];
    expect(disagreementText(compareRuns(scenario, results))).toBe(
      `made-up.yaml:6 (IPv4): pod to 10.96.0.10:80/TCP
  first wrong run: packets
  expected: reject
  table:     reject
  rendering: reject
  packets:   3 x timeout
  because the table has reasons
  because packets looked`,
    );
  });
});
