import { expect, test } from 'vitest';
import type { ProgressEvent } from '../model/case.ts';
import { LeapingClock } from '../testing/leaping-clock.ts';
import { ScriptedEnvironment } from '../testing/scripted-environment.ts';
import { scenarioCase } from '../testing/cases.ts';
import { runProxies } from './run-round.ts';

test('what is planned is what starts, round by round', async () => {
  const proxy = { name: 'p', dataplane: 'nftables', command: undefined } as const;
  const about = { proxy, cell: 'ipv4', cases: [scenarioCase('a'), scenarioCase('b')] } as const;
  const told: ProgressEvent[] = [];
  await runProxies(
    [
      {
        ...about,
        target: 'lab',
        laneNames: ['l'],
        openEnvironment: () =>
          Promise.resolve(new ScriptedEnvironment({ clock: new LeapingClock(), about: proxy, proxy: {} })),
      },
    ],
    { jobs: 1, seed: 1, rounds: 3, isFailFast: false, onProgress: (event) => void told.push(event) },
    new AbortController().signal,
  );
  const started = told.flatMap((event) =>
    event.kind === 'runStarted' ? [{ run: event.run, caseIds: event.caseIds }] : [],
  );
  expect(told[0]).toEqual({ kind: 'planned', runs: started });
  expect(started.map(({ run }) => run.round)).toEqual([1, 2, 3]);
});
