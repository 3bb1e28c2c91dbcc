import { describe, expect, test } from 'vitest';
import { compareAltitudes, disagreementText } from './compare-altitudes.ts';
import { loadScenario } from './load-scenario.ts';
import type { Altitude, Scenario } from './scenario.ts';
import type { AltitudeResult, StepResult } from './verdict.ts';

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

function saw(altitude: Altitude, ...observed: readonly (string | undefined)[]): AltitudeResult {
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
            because: [altitude === 'table' ? 'the table has reasons' : `${altitude} looked`],
          },
        ],
  );
  return { altitude, steps, skipped: [] };
}

describe('compareAltitudes', () => {
  test.each([
    {
      title: 'nothing when all altitudes see what is expected',
      results: [saw('table', 'reject'), saw('rendered', 'reject'), saw('lab', 'reject')],
      faults: [],
    },
    {
      title: 'the lab when only real packets go elsewhere',
      results: [saw('table', 'reject'), saw('rendered', 'reject'), saw('lab', 'drop')],
      faults: ['lab'],
    },
    {
      title: 'the rendering when it and all above it are wrong',
      results: [saw('lab', 'drop'), saw('table', 'reject'), saw('rendered', 'drop')],
      faults: ['rendered'],
    },
    {
      title: 'the table when all agree with each other but not with the file',
      results: [saw('table', 'drop'), saw('rendered', 'drop'), saw('lab', 'drop')],
      faults: ['table'],
    },
    {
      title: 'the table when it is wrong and real packets do the right thing',
      results: [saw('table', 'drop'), saw('lab', 'reject')],
      faults: ['table'],
    },
    {
      title: 'an altitude that did not look where the table did',
      results: [saw('table', 'reject'), saw('rendered', undefined), saw('lab', 'reject')],
      faults: ['rendered'],
    },
    {
      title: 'every step that is wrong, on its own',
      results: [saw('table', 'reject', 'reject'), saw('rendered', 'drop', 'reject'), saw('lab', 'reject', 'pass')],
      faults: ['rendered', 'lab'],
    },
    {
      title: 'a step that only the later altitudes have, such as a restart',
      results: [saw('table', 'reject', undefined), saw('rendered', 'reject', '3 writes')],
      faults: ['rendered'],
    },
  ])('names $title', ({ results, faults }) => {
    expect(compareAltitudes(scenario, results).map(({ firstWrong }) => firstWrong)).toEqual(faults);
  });

  test('does not ask an altitude for a step it skipped', () => {
    const lab = { ...saw('lab', undefined), skipped: [{ line: 6, because: 'no such packets here' }] };
    expect(compareAltitudes(scenario, [saw('table', 'reject'), lab])).toEqual([]);
  });

  test('reports file and line, what each altitude saw, and why the table decided so', () => {
    const results = [saw('table', 'reject'), saw('rendered', 'reject'), saw('lab', '3 x timeout')];
    expect(disagreementText(compareAltitudes(scenario, results))).toBe(
      `made-up.yaml:6 (IPv4): pod to 10.96.0.10:80/TCP
  first wrong altitude: lab
  expected: reject
  table:    reject
  rendered: reject
  lab:      3 x timeout
  because the table has reasons
  because lab looked`,
    );
  });
});
