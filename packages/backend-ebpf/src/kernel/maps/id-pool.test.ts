import { describe, expect, test } from 'vitest';
import { BitTree } from './bit-tree.ts';
import { IdPool } from './id-pool.ts';
import { StepClock } from '../../testing/index.ts';
import { quarantineTime } from './quarantine.ts';

describe('IdPool', () => {
  test('begins with 1 and never gives 0', () => {
    const pool = new IdPool(new StepClock(), 4);
    expect([pool.allocate(), pool.allocate(), pool.allocate(), pool.allocate()]).toEqual([1, 2, 3, 0]);
    expect(pool.available).toBe(0);
  });

  test('an id that was in use waits; one that was never published does not', () => {
    const clock = new StepClock();
    const pool = new IdPool(clock, 4);
    for (const id of [1, 2, 3]) expect(pool.allocate()).toBe(id);
    pool.retire(1);
    clock.step(quarantineTime - 1);
    pool.free(3);
    expect([pool.allocate(), pool.allocate()]).toEqual([3, 0]);
    clock.step(1);
    expect(pool.allocate()).toBe(1);
  });

  test('recovers which ids are in use: the others below the end wait, unless they are clean', () => {
    const clock = new StepClock();
    const pool = IdPool.recover(clock, 16, {
      end: 6,
      isUsed: (id) => id === 2 || id === 4,
      isClean: (id) => id === 3,
    });
    expect([pool.allocate(), pool.allocate(), pool.end]).toEqual([3, 6, 7]);
    clock.step(quarantineTime);
    expect([pool.allocate(), pool.allocate(), pool.allocate()]).toEqual([1, 5, 7]);
  });

  test('a larger map has more, and those that were free stay free', () => {
    const pool = new IdPool(new StepClock(), 3);
    expect([pool.allocate(), pool.allocate(), pool.allocate()]).toEqual([1, 2, 0]);
    pool.free(1);
    pool.grow(100);
    expect([pool.allocate(), pool.allocate(), pool.available]).toEqual([1, 3, 96]);
  });
});

describe('BitTree', () => {
  test.each([1, 32, 33, 1024, 1025, 70_000])(
    'of %i finds the lowest member and forgets those that were deleted',
    (size) => {
      const tree = new BitTree(size);
      expect(tree.first()).toBe(-1);
      const members = [...new Set([size - 1, size >> 1, size >> 2, 0])].sort((a, b) => b - a);
      for (const member of members) {
        tree.add(member);
        expect(tree.first()).toBe(member);
      }
      expect(tree.members()).toEqual([...members].reverse());
      for (const member of [...members].reverse()) {
        expect(tree.first()).toBe(member);
        tree.delete(member);
        expect(tree.has(member)).toBe(false);
      }
      expect(tree.first()).toBe(-1);
    },
  );
});
