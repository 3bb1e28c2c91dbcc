import { describe, expect, test } from 'vitest';
import { ClassPool } from './service-elements.ts';
import type { Change } from '../render/elements.ts';
import { printChanges } from '../testing/print-changes.ts';
import { orderChanges, staleElementGroups } from './driver.ts';

const pool = (...names: readonly string[]): ClassPool => {
  const classes = new ClassPool('4');
  classes.reset(new Map(names.map((name) => [Number(name.slice(4)), name])));
  return classes;
};
const transactions = (changes: readonly Change[], classes = pool('lb4-1')) => orderChanges([{ changes }], classes);
const order = (changes: readonly Change[], classes = pool('lb4-1')): readonly Change[] =>
  Object.values(transactions(changes, classes)).flat();
const add = (id: string, data = ''): Change => ({ kind: 'add', id, data });

describe('orderChanges', () => {
  test('adds what is pointed to first, deletes it last, and settings come between', () => {
    const changes: readonly Change[] = [
      { kind: 'delete', id: 'endpoints4 0x1 . 0' },
      { kind: 'delete', id: 'frontends4 old' },
      { kind: 'replace', object: 'pod-cidrs4', content: ['10.0.0.0/8'] },
      add('cluster-ips4 1'),
      add('frontends4 new', '0x1'),
      add('frontends4 changed', '0x2'),
      { kind: 'delete', id: 'frontends4 changed' },
      add('endpoints4 0x2 . 0', 'x'),
    ];
    expect(printChanges('t', order(changes))).toBe(`add element inet t endpoints4 { 0x2 . 0 : x }
delete element inet t frontends4 { changed }
add element inet t frontends4 { new : 0x1, changed : 0x2 }
add element inet t cluster-ips4 { 1 }
flush set inet t pod-cidrs4
add element inet t pod-cidrs4 { 10.0.0.0/8 }
delete element inet t frontends4 { old }
delete element inet t endpoints4 { 0x1 . 0 }
`);
  });

  test('a value that one group deletes and another adds is deleted first', () => {
    const groups = [
      { changes: [add('frontends4 x', '0x2')] },
      { changes: [{ kind: 'delete', id: 'frontends4 x' }] },
    ] as const;
    expect(orderChanges(groups, pool()).changes.map(({ kind }) => kind)).toEqual(['delete', 'add']);
  });

  test('the cluster IP of several ports is written once', () => {
    expect(order([add('cluster-ips4 1'), add('cluster-ips4 1'), add('cluster-ips4 2')])).toHaveLength(2);
  });

  test('a class that is not there is made first, and once', () => {
    const changes = [add('to-cluster4 0x1', '0x12c00002'), add('to-local4 0x1', '0x12c00003')];
    expect(order(changes)).toEqual([
      { kind: 'class', suffix: '4', handleClass: 300, chain: { kind: 'lb', slots: 300 } },
      ...changes,
    ]);
    expect(order(changes, pool('lb4-300'))).toEqual(changes);
  });
});

describe('transactions of a write', () => {
  const remove = (id: string): Change => ({ kind: 'delete', id });
  const sizes = (...changes: readonly Change[]): readonly number[] =>
    Object.values(transactions(changes)).map(({ length }: readonly Change[]) => length);
  const changed = [remove('frontends4 x'), add('frontends4 x', '0x2')];

  test.each([
    ['to-local4 0x1', 'a policy that no frontend has any more'],
    ['endpoints4 0x2 . 0', 'the endpoints of a Service that has affinity now'],
    ['aff-slots4 0x2 . 0', 'the pins of one that had it'],
    ['fw-allow4 x . 10.0.0.0/8', 'a range of sources, now that all may come'],
  ])('%s, %s, is deleted after packets read the new frontends', (id) => {
    const { classes, changes, deletions } = transactions([remove('hairpin4 y'), remove(id), ...changed]);
    expect(classes).toEqual([]);
    expect(changes).toEqual(changed);
    expect(deletions).toHaveLength(2);
    expect(deletions).toEqual(expect.arrayContaining([remove(id), remove('hairpin4 y')]));
  });

  test('a class is made before anything leads to it', () => {
    expect(sizes(...changed, remove('to-cluster4 0x1'), add('to-cluster4 0x1', '0x12c00002'))).toEqual([1, 4, 0]);
    const [alone] = order([add('to-cluster4 0x1', '0x12c00002')]);
    expect(Object.values(transactions([alone!]))).toMatchObject([[{ kind: 'class' }], [], []]);
  });

  test.each<[string, readonly Change[]]>([
    ['one endpoint fewer: the first slot stands in', [remove('endpoints4 0x2 . 1'), ...changed]],
    ['a changed value', changed],
    ['a Service that goes', [remove('frontends4 x'), remove('to-cluster4 0x1'), remove('endpoints4 0x2 . 0')]],
    ['other ranges, which may overlap', [remove('fw-allow4 x . 10.0.0.0/8'), add('fw-allow4 x . 10.0.0.0/9')]],
    ['additions', [add('endpoints4 0x2 . 0')]],
    ['nothing', []],
  ])('%s: one transaction', (_, changes) => {
    expect(sizes(...changes)).toEqual([0, changes.length, 0]);
  });
});

describe('printChanges', () => {
  test('nothing is no text', () => {
    expect(printChanges('t', [])).toBe('');
  });

  test('long lists are several commands', () => {
    const changes = Array.from({ length: 501 }, (_, index): Change => ({
      kind: 'add',
      id: `hairpin4 ${index}`,
      data: '',
    }));
    expect(printChanges('t', changes).split('\n')).toHaveLength(3);
  });

  test('an emptied set is only flushed', () => {
    expect(printChanges('t', [{ kind: 'replace', object: 'pod-cidrs6', content: [] }])).toBe(
      'flush set inet t pod-cidrs6\n',
    );
  });
});

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

test('no stale elements make no group', () => {
  expect([...staleElementGroups([], new ClassPool('4'), 2)]).toEqual([]);
});
