import { expect, test } from 'vitest';
import { LineSplitter } from './line-splitter.ts';

const text = 'one\n\ntwo and more\nthree';

test.each([1, 2, 5, 100])('lines are delivered whole, from pieces of %i characters', (length) => {
  const lines: string[] = [];
  const splitter = new LineSplitter((line) => lines.push(line));
  for (let at = 0; at < text.length; at += length) splitter.push(text.slice(at, at + length));
  expect(lines).toEqual(['one', '', 'two and more']);
  splitter.end();
  splitter.end();
  expect(lines).toEqual(['one', '', 'two and more', 'three']);
});
