import { describe, expect, test } from 'vitest';
import { seconds } from '@switchyard/core';
import { predictLoss, type RolloutTimes } from './loss-model.ts';
import {
  appServesFiveSeconds,
  appServesHalfAMinute,
  appStopsAtOnce,
  type Rollout,
} from './testing/measured-rollouts.ts';

interface Row {
  readonly name: string;
  readonly times: RolloutTimes;
  readonly model: number | undefined;
  readonly lost: number;
}

function rowsOf(rollouts: readonly Rollout[], appEnded: number): readonly Row[] {
  return rollouts.flatMap(([proxy, sync, ...sides]) =>
    sides.map(([newUp, oldDown, model, lost], index) => ({
      name: `${proxy}, ${index === 0 ? '5s x 3' : '2s x 1'}`,
      times: {
        terminatingFallback: !proxy.startsWith('old-iptables,'),
        oldNodeSynced: sync === undefined ? undefined : seconds(sync),
        appEnded: seconds(appEnded),
        newUp: seconds(newUp),
        oldDown: seconds(oldDown),
        until: seconds(40),
      },
      model,
      lost,
    })),
  );
}

// When the app stopped accepting was measured per group only. `tolerance`: what that, and times and models that are
// rounded (one request is 50 ms), leave open; +0.03..+0.12 s for the app that stops at once.
const groups = [
  { group: 'the app serves 30 s', rows: rowsOf(appServesHalfAMinute, 30.05), tolerance: 0.7 },
  { group: 'the app stops at once', rows: rowsOf(appStopsAtOnce, 0.07), tolerance: 1.4 },
  { group: 'the app serves 5 s', rows: rowsOf(appServesFiveSeconds, 5.03), tolerance: 0.9 },
];
const all = groups.flatMap(({ rows }) => rows);
const errorOf = ({ times, lost }: Row): number => lost - predictLoss(times, 20).lost;

test('all 38 rollouts are here, from both sides', () => {
  expect(all.length).toBe(76);
});

describe.each(groups)('predictLoss, where $group', ({ rows, tolerance }) => {
  test.each(rows.filter(({ model }) => model !== undefined))(
    'says what the model column says: $name',
    ({ times, model = 0 }) => {
      expect(Math.abs(predictLoss(times, 20).lost - model)).toBeLessThanOrEqual(tolerance);
    },
  );
  test.each(rows)('is 3 requests too low or 1 too high at most: $name', (row) => {
    expect(errorOf(row)).toBeGreaterThanOrEqual(-1 - tolerance);
    expect(errorOf(row)).toBeLessThanOrEqual(3 + tolerance);
  });
});

test('predictLoss errs by less than a request in the mean', () => {
  const errors = all.map((row) => Math.abs(errorOf(row)));
  expect(errors.reduce((sum, error) => sum + error) / errors.length).toBeLessThan(0.8);
});
