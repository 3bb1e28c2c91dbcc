import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { millis, seconds } from '@switchyard/core';
import { type CheckTiming, takenInAfter, takenOutAfter } from './check-timing.ts';
import { noneUpProbability } from './hole.ts';
import { predictRollout } from './predict-rollout.ts';
import { requiredServing } from './required-serving.ts';
import type { RolloutSetting } from './rollout-setting.ts';

const check: fc.Arbitrary<CheckTiming> = fc
  .record({
    interval: fc.integer({ min: 1, max: 20 }),
    share: fc.integer({ min: 1, max: 4 }),
    fall: fc.integer({ min: 1, max: 4 }),
    rise: fc.integer({ min: 1, max: 4 }),
    whenNoneUp: fc.constantFrom('close' as const, 'lastUp' as const, 'all' as const),
  })
  .map(({ interval, share, fall, rise, whenNoneUp }) => ({
    interval: seconds(interval / 2),
    downInterval: seconds(interval / 2 / share),
    fall,
    rise,
    timeout: undefined,
    whenNoneUp,
    lastUpFor: seconds(60),
  }));

const delay = fc.integer({ min: 0, max: 1500 });
const shape = fc.record({
  replicas: fc.integer({ min: 1, max: 4 }),
  nodes: fc.integer({ min: 1, max: 5 }),
  spread: fc.constantFrom('perNode' as const, 'anywhere' as const),
  strategy: fc.constantFrom(
    { kind: 'RollingUpdate', maxSurge: 1, maxUnavailable: 0 } as const,
    { kind: 'RollingUpdate', maxSurge: 0, maxUnavailable: 1 } as const,
    { kind: 'RollingUpdate', maxSurge: 2, maxUnavailable: 2 } as const,
    { kind: 'Recreate' } as const,
  ),
  minReady: fc.constantFrom(seconds(0), seconds(5)),
});
const setting: fc.Arbitrary<RolloutSetting> = fc
  .record({
    policy: fc.constantFrom('Local' as const, 'Cluster' as const),
    check,
    delay,
    drain: fc.integer({ min: 0, max: 40 }),
    shape,
    terminatingFallback: fc.boolean(),
  })
  .map(({ policy, check, delay, drain, shape, terminatingFallback }) => ({
    policy,
    check,
    shape,
    proxy: {
      terminatingFallback,
      noticesReady: { shortest: millis(0), longest: millis(100) },
      noticesTerminating: { shortest: millis(delay), longest: millis(delay + 100) },
    },
    app: { startup: seconds(1), preStop: seconds(0), drain: seconds(drain), gracePeriod: seconds(600) },
  }));

/** One pod that moves to the other of two nodes and serves for ever, with a proxy that needs exactly `delay`. */
function moving(timing: CheckTiming, delay: number): RolloutSetting {
  const exactly = (duration: number) => ({ shortest: millis(duration), longest: millis(duration) });
  return {
    policy: 'Local',
    check: timing,
    proxy: { terminatingFallback: true, noticesReady: exactly(0), noticesTerminating: exactly(delay) },
    app: { startup: seconds(1), preStop: seconds(0), drain: seconds(3600), gracePeriod: seconds(3600) },
    shape: {
      replicas: 1,
      nodes: 2,
      spread: 'perNode',
      strategy: { kind: 'RollingUpdate', maxSurge: 1, maxUnavailable: 0 },
      minReady: seconds(0),
    },
  };
}

/** The mean time between `out` and `in`, while no node is UP, for moments that are uniform and independent. */
function meanHole(timing: CheckTiming, after: number): number {
  const newIn = takenInAfter(timing);
  const oldOut = takenOutAfter(timing);
  const cube = (x: number): number => (x > 0 ? x ** 3 / 6 : 0);
  const volume =
    cube(newIn.longest - oldOut.shortest - after) -
    cube(newIn.shortest - oldOut.shortest - after) -
    cube(newIn.longest - oldOut.longest - after) +
    cube(newIn.shortest - oldOut.longest - after);
  return volume / ((newIn.longest - newIn.shortest) * (oldOut.longest - oldOut.shortest));
}

test('the hole is as likely and as long as geometry says', () => {
  fc.assert(
    fc.property(check, delay, (timing, duration) => {
      const closing = { ...timing, whenNoneUp: 'close' } as const;
      const { expected, noneUp } = predictRollout(moving(closing, duration));
      const after = duration + 30; // the old pod is deleted 30 ms after the new one is ready
      expect(Math.abs(noneUp - noneUpProbability(closing, millis(after)))).toBeLessThan(0.02);
      expect(Math.abs(expected - meanHole(closing, after))).toBeLessThan(0.01 * closing.interval * closing.rise + 5);
    }),
    { numRuns: 40 },
  );
});

test('where all nodes are used while none is UP, the hole costs the part of the nodes that have no pod', () => {
  const lostOn = (timing: CheckTiming, duration: number, nodes: number): number => {
    const { shape, ...rest } = moving(timing, duration);
    return predictRollout({ ...rest, shape: { ...shape, nodes } }).expected;
  };
  fc.assert(
    fc.property(check, delay, fc.integer({ min: 2, max: 9 }), (timing, duration, nodes) => {
      const closed = lostOn({ ...timing, whenNoneUp: 'close' }, duration, nodes);
      const open = lostOn({ ...timing, whenNoneUp: 'all' }, duration, nodes);
      expect(Math.abs(open - (closed * (nodes - 2)) / nodes)).toBeLessThanOrEqual(1);
    }),
    { numRuns: 40 },
  );
});

test('nothing is lost while nodes that were UP are used and go on serving', () => {
  fc.assert(
    fc.property(check, delay, (timing, duration) => {
      const { worst } = predictRollout(moving({ ...timing, whenNoneUp: 'lastUp' }, duration));
      expect(worst).toBe(0);
    }),
    { numRuns: 40 },
  );
});

test('best, expected and worst are in order, and the causes add up', () => {
  fc.assert(
    fc.property(setting, (one) => {
      const { best, expected, worst, byCause } = predictRollout(one);
      expect(best).toBeLessThanOrEqual(expected + 1e-6);
      expect(expected).toBeLessThanOrEqual(worst + 1e-6);
      expect(Math.abs(Object.values(byCause).reduce((sum, part) => sum + part, 0) - expected)).toBeLessThanOrEqual(2);
    }),
    { numRuns: 40 },
  );
});

test('an app that serves for as long as required is never missed, where a new pod is ready first', () => {
  fc.assert(
    fc.property(setting, fc.boolean(), (one, isFastDrain) => {
      const surging = {
        ...one,
        ...(isFastDrain ? { fastDrain: { shortest: millis(0), longest: millis(300) } } : {}),
        proxy: { ...one.proxy, terminatingFallback: true },
        shape: { ...one.shape, strategy: { kind: 'RollingUpdate', maxSurge: 1, maxUnavailable: 0 } },
      } as const;
      const drain = requiredServing(surging);
      expect(drain).toBeDefined();
      if (drain === undefined) return;
      const { byCause } = predictRollout({ ...surging, app: { ...one.app, drain } });
      // A node that gets its new pod before it is DOWN is used again as soon as the slice says so: its proxy may be 0.1 s later.
      expect(byCause.appGone ?? 0).toBeLessThanOrEqual(isFastDrain ? 100 * one.shape.replicas : 0);
      expect(byCause.droppedByNodeAlone ?? 0).toBe(0);
      expect(byCause.droppedByNodeShared ?? 0).toBe(0);
    }),
    { numRuns: 40 },
  );
});
