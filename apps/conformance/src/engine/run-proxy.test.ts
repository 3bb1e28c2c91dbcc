import { expect, test } from 'vitest';
import type { ProgressEvent } from '../model/progress.ts';
import { LeapingClock } from '../testing/leaping-clock.ts';
import { ScriptedEnvironment } from '../testing/scripted-environment.ts';
import { scenarioCase } from '../testing/cases.ts';
import { plannedRuns, runProxy } from './run-proxy.ts';

test('what is planned is what starts, round by round', async () => {
  const proxy = { name: 'p', dataplane: 'nftables', command: undefined } as const;
  const about = { proxy, cell: 'ipv4', cases: [scenarioCase('a'), scenarioCase('b')] } as const;
  const told: ProgressEvent[] = [];
  await runProxy(
    {
      ...about,
      target: 'lab',
      laneNames: ['l'],
      openEnvironment: () =>
        Promise.resolve(new ScriptedEnvironment({ clock: new LeapingClock(), about: proxy, proxy: {} })),
      seed: 1,
      rounds: 3,
      onProgress: (event) => void told.push(event),
    },
    new AbortController().signal,
  );
  const started = told.flatMap((event) =>
    event.kind === 'runStarted' ? [{ run: event.run, caseIds: event.caseIds }] : [],
  );
  expect(plannedRuns([about], 3)).toEqual(started);
  expect(started.map(({ run }) => run.round)).toEqual([1, 2, 3]);
});
