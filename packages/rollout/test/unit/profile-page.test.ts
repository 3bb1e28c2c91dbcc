import { describe, expect, test } from 'vitest';
import type { ProfileCell } from '../../bench/profile-table/profile-cell.ts';
import { type ProfileFigures, profilePage } from '../../bench/profile-table/profile-page.ts';

const cell: ProfileCell = {
  profile: 'cloud-provider-kind',
  interval: 5,
  fall: 3,
  terminatingFallback: false,
  fastDrain: false,
  drain: 30,
  requests: 730,
  lost: 143,
  lossWindow: 11.5,
  predictedFromEvents: 145,
  predicted: { best: 100.2, expected: 150, worst: 201.6 },
  isWithin: true,
};
const figures: ProfileFigures = { machine: 'a machine', runtime: 'process', timeScale: 0.5, rate: 20, cells: [] };

describe('the page of the profile table', () => {
  test('has the fallback off and on in one row, by profile and drain time', () => {
    const none = { best: 0, expected: 0, worst: 0 };
    const on = { ...cell, terminatingFallback: true, lost: 0, predictedFromEvents: 0, predicted: none };
    const short = { ...on, drain: 5, lost: 300, lossWindow: 20, isWithin: false };
    const page = profilePage({ ...figures, cells: [cell, on, short] });
    expect(page).toContain(
      [
        '| profile | serves on | fallback off: lost | predicted | fallback on: lost | predicted |',
        '| --- | --- | --- | --- | --- | --- |',
        '| cloud-provider-kind (5 s × 3) | 30 s | **143** (11.5 s) | 100–202 | **0** | 0 |',
        '| cloud-provider-kind (5 s × 3) | 5 s | - | - | **300** (20 s) | 0 (outside) |',
      ].join('\n'),
    );
    expect(page).toContain('2 of 3 rollouts lost what was predicted.');
    expect(page).toContain('the model errs by 100.7 requests in the mean, 300 at most');
    expect(page).toContain('all durations were multiplied by 0.5');
  });

  test('in real time says nothing of a scale', () => {
    expect(profilePage({ ...figures, timeScale: 1, cells: [cell] })).not.toContain('multiplied');
  });
});
