import { millis } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { summarise } from '../../src/summarise.ts';
import { syntheticRun } from '../../src/testing/synthetic-run.ts';
import { type ProfileCell, profileCell } from '../../bench/profile-table/profile-cell.ts';

function cellOf(terminatingFallback: boolean, lost?: number): ProfileCell {
  const run = syntheticRun({ terminatingFallback });
  const summary = summarise(run, () => []);
  return profileCell(run.settings, 30, { ...summary, lost: lost ?? summary.lost });
}

describe('a cell of the profile table', () => {
  test('has the loss beside what the model says of the event times, and said before', () => {
    expect(cellOf(false)).toMatchObject({
      profile: 'cloud-provider-kind',
      interval: 5,
      fall: 3,
      terminatingFallback: false,
      drain: 30,
      lost: 142,
      predictedFromEvents: 145,
      isWithin: true,
    });
  });

  test('with the fallback, an app that serves longer than checks take loses nothing, best and worst', () => {
    expect(cellOf(true)).toMatchObject({ lost: 0, predicted: { best: 0, expected: 0, worst: 0 }, isWithin: true });
  });

  test.each([
    ['two requests, a tenth of a second, beside the prediction are within it', true, 2, true],
    ['three are not', true, 3, false],
    ['less than the best is not', false, 90, false],
    ['more than the worst is not', false, 210, false],
  ])('%s', (_, fallback, lost, isWithin) => {
    expect(cellOf(fallback, lost).isWithin).toBe(isWithin);
  });

  test('seconds are those of an unscaled experiment', () => {
    const run = syntheticRun({ terminatingFallback: false });
    const settings = {
      ...run.settings,
      timeScale: 0.5,
      healthCheck: { ...run.settings.healthCheck, interval: millis(2500) },
    };
    const cell = profileCell(
      settings,
      30,
      summarise(run, () => []),
    );
    expect(cell).toMatchObject({ interval: 5, lossWindow: expect.closeTo(2 * 11.5, 0) as number });
  });
});
