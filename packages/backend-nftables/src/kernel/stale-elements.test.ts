import { expect, test } from 'vitest';
import { ClassPool } from './class-pool.ts';
import { staleElementGroups } from './stale-elements.ts';

test.each([
  [5, [['frontends4 x', 'frontends4 y', 'to-cluster4 0x1', 'endpoints4 0x2 . 0']]],
  [
    2,
    [
      ['frontends4 x', 'frontends4 y'],
      ['to-cluster4 0x1', 'endpoints4 0x2 . 0'],
    ],
  ],
])('at %i changes per group frontends go before what they lead to', (limit, groups) => {
  const ids = ['endpoints4 0x2 . 0', 'frontends4 x', 'to-cluster4 0x1', 'frontends4 y'];
  const planned = [...staleElementGroups(ids, new ClassPool('4'), limit)];
  expect(planned.map((group) => group.plan())).toEqual(
    groups.map((group) => group.map((id) => ({ kind: 'delete', id }))),
  );
});

test('nothing is no group', () => {
  expect([...staleElementGroups([], new ClassPool('4'), 2)]).toEqual([]);
});
