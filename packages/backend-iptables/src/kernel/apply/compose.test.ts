import { describe, expect, test } from 'vitest';
import { chainChange, type Change } from './change.ts';
import { composeRestore, writeOrder } from './compose.ts';

const chain = (name: string, table: Change['table'] = 'nat'): Change =>
  chainChange({ table, name, rules: [`-j ${name}1`, `-j ${name}2`] });
const insert = (table: Change['table'], rule: string, isJump = false): Change => ({
  kind: 'insert',
  table,
  chain: 'C',
  rule,
  isJump,
});
const remove = (name: string): Change => ({ kind: 'remove', table: 'nat', name });
const unlink = (table: Change['table'], rule: string): Change => ({ kind: 'delete', table, chain: 'C', rule });

const text = composeRestore([
  { group: 'a', changes: [chain('A'), insert('nat', 'a'), insert('filter', 'ra'), remove('OLD')] },
  { group: 'b', changes: [unlink('filter', 'rb'), chain('B'), insert('nat', 'jump', true), unlink('nat', 'b')] },
]);
const lines = [...text.pieces()].join('').trimEnd().split('\n');

test('rejects come before nat and go after it, for all owners; chains are named first and deleted last', () => {
  expect(lines).toEqual([
    '*filter',
    '-I C 1 ra',
    'COMMIT',
    '*nat',
    ':OLD - [0:0]',
    ':B - [0:0]',
    ':A - [0:0]',
    '-A A -j A1',
    '-A A -j A2',
    '-A B -j B1',
    '-A B -j B2',
    '-I C 1 a',
    '-I C 1 jump',
    '-D C b',
    '-X OLD',
    'COMMIT',
    '*filter',
    '-D C rb',
    'COMMIT',
  ]);
  expect(text.transactions).toBe(3);
});

describe('each line has an owner', () => {
  test.each(lines.map((line, at) => [at + 1, line] as const))('%d: %s', (number, line) => {
    const isOfNobody = line.startsWith('*') || line === 'COMMIT';
    const isOfA = /\b(ra|OLD|A|A1|A2|a)$/.test(line.replace(' - [0:0]', ''));
    expect(text.ownerOf(number)).toBe(isOfNobody ? undefined : isOfA ? 'a' : 'b');
  });

  test.each([0, lines.length + 1, 1000])('not %d', (number) => {
    expect(text.ownerOf(number)).toBeUndefined();
  });
});

test.each([
  [2, []],
  [3, []],
  [4, ['ra']],
  [16, ['ra']],
  [18, ['ra', 'A', 'B', 'a', 'jump', 'b', 'OLD']],
] as const)('what is written when line %d is refused: transactions that end before it', (line, expected) => {
  const written = [...text.writtenBefore(line)];
  expect(written.map((change) => ('name' in change ? change.name : 'rule' in change ? change.rule : ''))).toEqual(
    expected,
  );
});

test('each step is in the order once', () => {
  const keys = writeOrder;
  expect(new Set(keys).size).toBe(keys.length);
});
