import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  assignSlots as assign,
  exactSlotCounts,
  loadBalancingClass,
  loadBalancingClasses,
  preloadedSlotCounts,
  slotCount,
  slotsOfClass,
} from './place-service.ts';

const exactLimit = preloadedSlotCounts;
const assignSlots = (previous: readonly (string | undefined)[], endpoints: readonly string[]): string[] =>
  assign({ previous, endpoints, exactLimit });

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `e${index}`);
const changed = (before: readonly string[], after: readonly string[]): number =>
  after.filter((slot, index) => slot !== before[index]).length + Math.max(0, before.length - after.length);

describe('slotCount', () => {
  test.each([
    [0, 0, preloadedSlotCounts],
    [1, 1, preloadedSlotCounts],
    [64, 64, preloadedSlotCounts],
    [65, 4096, preloadedSlotCounts],
    [512, 4096, preloadedSlotCounts],
    [65, 65, exactSlotCounts],
    [1024, 1024, exactSlotCounts],
    [1025, 16_384, exactSlotCounts],
    [8192, 65_536, exactSlotCounts],
    [65_536, 65_536, exactSlotCounts],
  ])('%i endpoints stand in %i slots where sets up to %i are exact', (endpoints, slots, limit) => {
    expect(slotCount(endpoints, limit)).toBe(slots);
  });
});

describe('load-balancing classes', () => {
  test('lead back to their number of slots', () => {
    expect(loadBalancingClasses.map(({ slots }) => slotsOfClass(loadBalancingClass(slots)))).toEqual(
      loadBalancingClasses.map(({ slots }) => slots),
    );
  });

  test('are distinct and leave 0x800 and above to session affinity', () => {
    const classes = loadBalancingClasses.map(({ handleClass }) => handleClass);
    expect(new Set(classes).size).toBe(classes.length);
    expect(Math.max(...classes)).toBeLessThan(0x800);
  });

  test.each([65, 300, 1024])('%i slots have a class that is not in the rules but leads back to them', (slots) => {
    const handleClass = loadBalancingClass(slots);
    expect(loadBalancingClasses.some((one) => one.handleClass === handleClass)).toBe(false);
    expect(slotsOfClass(handleClass)).toBe(slots);
  });

  test.each([0, 0x401, 0x7ef, 0x7f5, 0x800])('class %i is unknown', (value) => {
    expect(slotsOfClass(value)).toBeUndefined();
  });
});

describe('assignSlots', () => {
  test('a new large set repeats the order given', () => {
    const endpoints = names(100);
    expect(assignSlots([], endpoints)).toEqual(Array.from({ length: 4096 }, (_, slot) => endpoints[slot % 100]));
  });

  test('a new set is in the order given', () => {
    expect(assignSlots([], ['a', 'b', 'c'])).toEqual(['a', 'b', 'c']);
  });

  test('one more takes a new slot at the end', () => {
    expect(assignSlots(['b', 'c'], ['a', 'b', 'c'])).toEqual(['b', 'c', 'a']);
  });

  test('one less is replaced by the last', () => {
    expect(assignSlots(['a', 'b', 'c'], ['b', 'c'])).toEqual(['c', 'b']);
  });

  test('holes and strangers found in the kernel are filled', () => {
    expect(assignSlots(['b', undefined, 'x'], ['a', 'b', 'c'])).toEqual(['b', 'a', 'c']);
  });

  test('doubles found in the kernel are resolved', () => {
    expect(assignSlots(['a', 'a', 'b'], ['a', 'b', 'c'])).toEqual(['a', 'c', 'b']);
  });

  test.each([65, 300, 512, 1000, 3000])('%i endpoints have equal shares, to one slot in eight', (count) => {
    const slots = assignSlots([], names(count));
    const shares = [...Map.groupBy(slots, (slot) => slot).values()].map((group) => group.length);
    expect([shares.length, slots.includes('')]).toEqual([count, false]);
    expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
    expect(Math.min(...shares)).toBeGreaterThanOrEqual(8);
  });

  test('one endpoint more among 1000 touches about its own share', () => {
    const before = assignSlots([], names(1000));
    expect(changed(before, assignSlots(before, names(1001)))).toBe(8);
  });

  test('any history ends with every endpoint in its share of slots, and the last step touches few', () => {
    const set = fc.uniqueArray(
      fc.integer({ min: 0, max: 400 }).map((index) => `e${index}`),
      { maxLength: 300 },
    );
    fc.assert(
      fc.property(fc.array(set, { minLength: 1, maxLength: 6 }), (history) => {
        let slots: string[] = [];
        for (const wanted of history) {
          const before = slots;
          slots = assignSlots(before, wanted);
          expect(slots.length).toBe(slotCount(wanted.length, exactLimit));
          const shares = Map.groupBy(slots, (slot) => slot);
          expect(new Set(shares.keys())).toEqual(new Set(wanted));
          const sizes = [...shares.values()].map((group) => group.length);
          if (sizes.length > 0) expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
          if (before.length === slots.length && new Set(before).size === wanted.length) {
            const gone = before.filter((slot) => !wanted.includes(slot)).length;
            if (slots.length <= exactLimit) expect(changed(before, slots)).toBe(gone);
          }
        }
      }),
      { numRuns: 100 },
    );
  });
});
