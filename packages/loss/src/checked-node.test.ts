import { describe, expect, test } from 'vitest';
import { seconds } from '@switchyard/core';
import type { CheckTiming } from './check-timing.ts';
import { checkedNode, heldFor } from './checked-node.ts';
import type { Steps } from './steps.ts';

const check: CheckTiming = {
  interval: seconds(5),
  downInterval: seconds(1),
  fall: 3,
  rise: 2,
  timeout: undefined,
  whenNoneUp: 'close',
  lastUpFor: seconds(0),
};
/** A value that flips at these moments. */
const flips = (initial: boolean, ...at: readonly number[]): Steps<boolean> => ({
  initial,
  changes: at.map((one, index) => ({ at: one, value: index % 2 === 0 ? !initial : initial })),
});
const flipsOf = ({ changes }: Steps<boolean>): readonly number[] => changes.map(({ at }) => at);

describe('checkedNode', () => {
  test.each<[what: string, health: Steps<boolean>, phase: number, flips: readonly number[]]>([
    ['goes at the third failure, the first one at once', flips(true, 1000), 0, [11_000]],
    ['goes at the third failure, the first one a whole pause later', flips(true, 1000), 0.999_999, [15_999.995]],
    ['comes at the second success, the pause before which is the long one', flips(false, 1000), 0.5, [6500]],
    ['forgives two failures', flips(true, 1000, 9000), 0, []],
    ['goes, and comes back', flips(true, 1000, 30_000), 0, [11_000, 35_000]],
    ['is not asked while it never changes', flips(true), 0.5, []],
  ])('a node %s', (_, health, phase, expected) => {
    const times = flipsOf(checkedNode(health, check, phase));
    expect(times.length).toBe(expected.length);
    times.forEach((at, index) => expect(at).toBeCloseTo(expected[index] ?? 0, 2));
  });
});

describe('heldFor', () => {
  test('puts each DOWN off', () => {
    expect(flipsOf(heldFor(flips(true, 1000), 500))).toEqual([1500]);
  });
  test('overlooks a DOWN that was shorter', () => {
    expect(heldFor(flips(true, 1000, 1200), 500).changes.every(({ value }) => value)).toBe(true);
  });
});
