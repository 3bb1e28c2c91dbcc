import { type Decision, sourceClasses } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import {
  decisionClass,
  decisionsOf,
  frontendClass,
  isRestricted,
  endpointSetId,
  handleClass,
  handleId,
  hex,
  IdPool,
  maxServiceId,
  packHandle,
} from './elements.ts';

const decisions: readonly Decision[] = [
  { kind: 'reject' },
  { kind: 'drop' },
  ...(['Cluster', 'Local'] as const).flatMap((to) =>
    [false, true].map((masquerade): Decision => ({ kind: 'forward', to, masquerade })),
  ),
];

describe('decision classes', () => {
  const all = decisions.flatMap((pod) =>
    decisions.flatMap((node) => decisions.map((outside) => ({ pod, node, outside }))),
  );

  test('every combination of decisions has a class of its own, also those that are unused today', () => {
    const classes = new Set(all.map(decisionClass));
    expect([all.length, classes.size]).toEqual([216, 216]);
  });

  test.each(all)('the class of %o says so', (wanted) => {
    expect(decisionsOf(decisionClass(wanted))).toEqual(wanted);
  });

  test('stay below the classes reserved for later', () => {
    expect(Math.max(...all.map(decisionClass))).toBeLessThan(0x200);
    expect(Math.min(...all.map(decisionClass))).toBeGreaterThan(0);
  });

  test('whether sources are restricted is one more bit, and no decision', () => {
    for (const decisions of all) {
      const [open, restricted] = [
        frontendClass({ decisions, allowedSources: 'any' }),
        frontendClass({ decisions, allowedSources: [] }),
      ];
      expect([isRestricted(open), isRestricted(restricted)]).toEqual([false, true]);
      expect(open).toBe(decisionClass(decisions));
      expect(decisionsOf(restricted)).toEqual(decisionsOf(open));
    }
  });

  test('the same for everybody needs no look at the source', () => {
    const drop: Decision = { kind: 'drop' };
    expect(decisionClass({ pod: drop, node: drop, outside: drop }) >> 3).toBe(0);
  });

  test.each([0, 0x200, 0xfff, 0b111])('class %i is unknown', (value) => {
    expect(decisionsOf(value)).toBeUndefined();
  });

  test('source classes are tested in the order of the table', () => {
    expect(sourceClasses).toEqual(['pod', 'node', 'outside']);
  });
});

describe('handles', () => {
  test('hold class and id', () => {
    const handle = packHandle(0xfff, 0xfffff);
    expect([hex(handle), handleClass(handle), handleId(handle)]).toEqual(['0xffffffff', 0xfff, 0xfffff]);
  });

  test('the highest set id fits', () => {
    expect(handleId(packHandle(1, endpointSetId(maxServiceId, 'Local')))).toBe(0xfffff);
  });

  test.each([
    ['a class that is too large', 0x1000, 1],
    ['an id that is too large', 1, 0x100000],
  ])('refuse %s', (_, handleClassValue, id) => {
    expect(() => packHandle(handleClassValue, id)).toThrow('cannot hold');
  });
});

describe('IdPool', () => {
  test('gives a freed id out again only after all others', () => {
    const pool = new IdPool();
    const first = pool.allocate()!;
    pool.free(first);
    const seen = new Set<number>();
    for (let count = 1; count < maxServiceId; count++) seen.add(pool.allocate()!);
    expect([seen.size, seen.has(first)]).toEqual([maxServiceId - 1, false]);
    expect([pool.allocate(), pool.allocate()]).toEqual([first, undefined]);
  });

  test('takes an id once and frees it once', () => {
    const pool = new IdPool();
    pool.reset([3, 3, 64]);
    for (const id of [3, 3, 99]) pool.free(id);
    const seen = new Set<number>();
    for (let id = pool.allocate(); id !== undefined; id = pool.allocate()) seen.add(id);
    expect([seen.size, seen.has(3), seen.has(64)]).toEqual([maxServiceId - 1, true, false]);
  });

  test('continues above the ids it was reset to', () => {
    const pool = new IdPool();
    pool.reset([7, 3]);
    expect([pool.allocate(), pool.allocate()]).toEqual([8, 9]);
  });

  test('continues above retired ids, without taking them', () => {
    const pool = new IdPool();
    pool.reset([3], [9, 1]);
    expect([pool.allocate(), pool.allocate()]).toEqual([10, 11]);
  });

  test('starts over at the end of the range', () => {
    const pool = new IdPool();
    pool.reset([maxServiceId, 1]);
    expect(pool.allocate()).toBe(2);
  });
});
