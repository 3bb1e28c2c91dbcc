import { describe, expect, test } from 'vitest';
import { millis, seconds } from '@switchyard/core';
import type { CheckTiming } from './check-timing.ts';
import { noneUpProbability } from './hole.ts';

const everyTwo: CheckTiming = {
  interval: seconds(2),
  downInterval: seconds(2),
  fall: 1,
  rise: 1,
  timeout: undefined,
  whenNoneUp: 'close',
  lastUpFor: seconds(0),
};
const lastUp = (duration: number): CheckTiming => ({
  ...everyTwo,
  whenNoneUp: 'lastUp',
  lastUpFor: seconds(duration),
});

describe('noneUpProbability', () => {
  // (2 - h)^2 / 8, the geometry of two checks of random phase.
  test.each([
    [0, 0.5],
    [0.1, 0.451],
    [1.05, 0.113],
    [2, 0],
    [3, 0],
  ])('of one failure every 2 s, with a proxy that needs %d s, is %d', (delay, probability) => {
    expect(noneUpProbability(everyTwo, seconds(delay))).toBeCloseTo(probability, 3);
  });
  test.each<[what: string, timing: CheckTiming, probability: number]>([
    ['two failures take a node out', { ...everyTwo, fall: 2 }, 0],
    ['two failures and two successes', { ...everyTwo, fall: 2, rise: 2 }, 0.5],
    ['three successes against two failures: always', { ...everyTwo, fall: 1, rise: 3 }, 1],
    ['DOWN nodes are checked eight times as often', { ...everyTwo, downInterval: millis(250) }, 1 / 16],
    ['nodes that were UP are used for long enough', lastUp(2), 0],
    ['nodes that were UP are used, but not for long enough', lastUp(1), 1 / 8],
  ])('where %s', (_, timing, probability) => {
    expect(noneUpProbability(timing, millis(0))).toBeCloseTo(probability, 6);
  });
});

test('the probability is above zero where one failure takes a node out, and zero where it takes two', () => {
  expect(noneUpProbability(everyTwo, seconds(1)) > 0).toBe(true);
  expect(noneUpProbability({ ...everyTwo, fall: 2 }, millis(0)) > 0).toBe(false);
});
