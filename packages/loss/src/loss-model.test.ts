import { describe, expect, test } from 'vitest';
import { millis, seconds } from '@switchyard/core';
import { blackoutOf, causeOfLoss, lossPhases, predictLoss, type RolloutTimes } from './loss-model.ts';

const times = (black: number, newUp: number, oldDown: number, by: 'node' | 'app' = 'node'): RolloutTimes => ({
  terminatingFallback: by === 'app',
  oldNodeSynced: by === 'node' ? seconds(black) : seconds(0.1),
  appEnded: by === 'app' ? seconds(black) : seconds(30),
  newUp: seconds(newUp),
  oldDown: seconds(oldDown),
  until: seconds(40),
});

describe('predictLoss', () => {
  test('splits the loss by what the load balancer had UP', () => {
    const prediction = predictLoss(times(0.16, 2.93, 11.7), 20);
    expect(prediction.alone).toBeCloseTo(55.4);
    expect(prediction.shared).toBeCloseTo(87.7);
    expect(prediction.noneUp).toBe(0);
  });
  test.each([
    {
      title: 'a node that drops',
      times: times(0.16, 2.93, 11.7),
      causes: { droppedByNodeAlone: 55.4, droppedByNodeShared: 87.7 },
    },
    { title: 'a hole', times: times(30.03, 1.59, 1.1, 'app'), causes: { noServerUp: 9.8 } },
    { title: 'an app that has ended', times: times(5.03, 3.46, 12.23, 'app'), causes: { appGone: 72 } },
    {
      title: 'an app that has ended, then a hole',
      times: times(0.06, 1.67, 1.18, 'app'),
      causes: { appGone: 22.4, noServerUp: 9.8 },
    },
    { title: 'nothing', times: times(30.03, 0.85, 14.62, 'app'), causes: {} },
  ])('returns the causes: $title', ({ times, causes }) => {
    const { byCause, lost } = predictLoss(times, 20);
    expect(Object.keys(byCause)).toEqual(Object.keys(causes));
    for (const [cause, requests] of Object.entries(causes)) {
      expect(byCause[cause as keyof typeof byCause]).toBeCloseTo(requests, 1);
    }
    expect(Object.values(byCause).reduce((sum, one) => sum + one, 0)).toBeCloseTo(lost);
  });
  test('a node that never comes UP loses until the end of the observation', () => {
    const never = { ...times(0, 1, 2), newUp: undefined };
    expect(predictLoss(never, 10).lost).toBeCloseTo(400);
  });
  test('nothing stops answering: nothing is lost', () => {
    expect(predictLoss({ ...times(1, 1, 20, 'app'), appEnded: undefined }, 20).lost).toBe(0);
  });
});

describe('lossPhases', () => {
  const between = (phases: ReturnType<typeof lossPhases>): readonly (readonly [string, number, number])[] =>
    phases.map(({ kind, from, to }) => [kind, from, to]);
  test.each([
    {
      title: 'alone, then shared, until the old node is DOWN',
      times: times(0.16, 2.93, 11.7),
      phases: [
        ['alone', 160, 2930],
        ['shared', 2930, 11_700],
      ],
    },
    {
      title: 'alone, then no node, if the old node is DOWN first',
      times: times(0.16, 1.86, 0.34),
      phases: [
        ['alone', 160, 340],
        ['noneUp', 340, 1860],
      ],
    },
    { title: 'shared only, if the new node was UP before', times: times(2, 1, 12), phases: [['shared', 2000, 12_000]] },
    { title: 'none, if the old node is DOWN before', times: times(12, 1, 2), phases: [] },
    {
      title: 'to the end of the observation, for what never happened',
      times: { ...times(0.16, 1, 2), newUp: undefined, oldDown: undefined },
      phases: [['alone', 160, 40_000]],
    },
  ])('$title', ({ times, phases }) => {
    expect(between(lossPhases(times))).toEqual(phases);
  });
});

describe('blackoutOf', () => {
  test.each([
    { title: 'without the fallback the node drops at its sync', times: times(0.16, 1, 2), by: 'node', at: 160 },
    {
      title: 'an app that ends before the sync is to blame',
      times: { ...times(1, 1, 2), appEnded: millis(50) },
      by: 'app',
      at: 50,
    },
    { title: 'with the fallback only the app can go', times: times(30, 1, 2, 'app'), by: 'app', at: 30_000 },
  ])('$title', ({ times, by, at }) => {
    expect(blackoutOf(times)).toEqual({ by, at });
  });
});

describe('causeOfLoss', () => {
  const slack = millis(100);
  test.each([
    { title: 'before the new node is UP', sent: 1, times: times(0.16, 2.93, 11.7), cause: 'droppedByNodeAlone' },
    { title: 'while both are UP', sent: 5, times: times(0.16, 2.93, 11.7), cause: 'droppedByNodeShared' },
    {
      title: 'a little before the sync was seen',
      sent: 0.1,
      times: times(0.16, 2.93, 11.7),
      cause: 'droppedByNodeAlone',
    },
    { title: 'while no node is UP', sent: 1.4, times: times(0.16, 1.66, 1.16), cause: 'noServerUp' },
    { title: 'just before no node is UP', sent: 1.1, times: times(0.16, 1.66, 1.16), cause: 'droppedByNodeAlone' },
    { title: 'a little after no node was UP', sent: 1.7, times: times(0.16, 1.66, 1.16), cause: 'noServerUp' },
    { title: 'just before the new node is UP', sent: 2.9, times: times(0.16, 2.93, 11.7), cause: 'droppedByNodeAlone' },
    {
      title: 'a little after the old node is DOWN',
      sent: 11.75,
      times: times(0.16, 2.93, 11.7),
      cause: 'droppedByNodeShared',
    },
    { title: 'after the app has gone', sent: 6, times: times(5, 2, 12, 'app'), cause: 'appGone' },
    { title: 'after the old node is DOWN', sent: 13, times: times(0.16, 2.93, 11.7), cause: 'unexplained' },
    { title: 'long before anything happened', sent: -3, times: times(0.16, 2.93, 11.7), cause: 'unexplained' },
  ])('$title: $cause', ({ sent, times, cause }) => {
    expect(causeOfLoss(seconds(sent), times, slack)).toBe(cause);
  });
});
