import { expect, test } from 'vitest';
import { markdownCode, markdownTable } from './markdown.ts';

test('a table has a head, a rule and its rows; pipes in cells do not end them', () => {
  const rows = [
    ['a | b', markdownCode('x')],
    ['', markdownCode('')],
  ];
  expect(markdownTable(['one', 'two'], rows)).toBe('| one | two |\n|---|---|\n| a \\| b | `x` |\n|  |  |');
});
