import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { Cell } from '../cell.ts';
import { readMatrix } from '../matrix/read-matrix.ts';
import { readFileSync } from 'node:fs';
import { chooseTests, patternOf } from './choose-tests.ts';
import { readSkipFolder, readSkips } from './read-skips.ts';

const entry = { test: 'should break', reason: 'it breaks the cluster', link: 'https://example.com/why' };
const cell: Cell = { id: 'x', backend: 'nftables', ipFamily: 'dual', kubernetes: '1.36', loadBalancer: 'none' };
const focus = ['[sig-network] Services'];

const faults: readonly (readonly [what: string, text: string, message: RegExp])[] = [
  [
    'no reason',
    JSON.stringify([{ ...entry, reason: undefined }]),
    /\[0\]\.reason: expected a reason, in words, found nothing$/,
  ],
  [
    'a reason that says nothing',
    JSON.stringify([{ ...entry, reason: 'flaky' }]),
    /\[0\]\.reason: expected a reason, in words, found "flaky"$/,
  ],
  [
    'no link',
    JSON.stringify([{ ...entry, link: 'see the issue' }]),
    /\[0\]\.link: expected a link that begins with https:\/\//,
  ],
  [
    'an unknown cell',
    JSON.stringify([{ ...entry, cells: { backend: ['ipvs'] } }]),
    /\[0\]\.cells\.backend\[0\]: expected one of nftables/,
  ],
  [
    'a misspelt field',
    JSON.stringify([{ ...entry, cell: {} }]),
    /\[0\]\.cell: there is no such field, only test, reason, link, cells$/,
  ],
  ['no test', JSON.stringify([{ ...entry, test: [] }]), /\[0\]\.test: expected at least one part of a test's name/],
  ['no list', 'test: a', /: the file: expected a list/],
];

describe('the skip list', () => {
  test.each(faults)('is refused with the place: %s', (_, text, message) => {
    expect(() => readSkips('skips/a.yaml', text)).toThrow(message);
  });

  test('that we have can be read, and every entry is for a cell that exists', async () => {
    const file = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
    const skips = await readSkipFolder(file('upstream-skips'));
    expect(skips.length).toBeGreaterThan(0);
    const { upstreamFocus, loadBalancers } = readMatrix('m', readFileSync(file('matrix.json'), 'utf8'));
    expect(upstreamFocus.length).toBeGreaterThan(0);
    for (const { loadBalancer } of skips)
      expect(loadBalancers).toEqual(expect.arrayContaining([...(loadBalancer ?? [])]));
  });
});

describe('tests of upstream', () => {
  const names = [
    '[sig-network] Services should work [Conformance]',
    '[sig-network] Services [Slow] should break things',
    '[sig-network] Services should work',
    '[sig-storage] Services should work',
    '[sig-network] Services should work',
  ];
  const chosenWith = (text: object): ReturnType<typeof chooseTests> =>
    chooseTests(names, { focus, skips: readSkips('s/a.yaml', JSON.stringify([text])), cell });

  test('run when they are in focus, once each, unless they are skipped', () => {
    const { run, skipped, unused } = chosenWith(entry);
    expect(run).toEqual([names[2], names[0]]);
    expect(skipped.map(({ name, entry: { reason } }) => [name, reason])).toEqual([[names[1], entry.reason]]);
    expect(unused).toEqual([]);
  });

  test.each([
    ['a name that is gone', { ...entry, test: 'should be gone' }],
    ['a test that is out of focus', { ...entry, test: '[sig-storage] Services' }],
    ['parts in another order', { ...entry, test: ['should break', '[Slow]'] }],
  ])('make an entry unused: %s', (_, wrong) => {
    expect(chosenWith(wrong).unused.map(({ place }) => place)).toEqual([expect.stringContaining('s/a.yaml:1:')]);
  });

  test('leave entries for other cells alone', () => {
    const { run, unused } = chosenWith({ ...entry, cells: { loadBalancer: ['switchyard'] } });
    expect(run).toContain(names[1]);
    expect(unused).toEqual([]);
  });

  test('are matched literally, with anything between parts', () => {
    expect(patternOf({ test: ['[Slow] a.b', '(c)'] })).toBe(String.raw`\[Slow\] a\.b.*\(c\)`);
  });
});
