import { expect, test } from 'vitest';
import { removalParts } from './plan-removal.ts';

/** `A>B` is a rule of A that leads to B. */
const parts = (chains: string, rules: string, size: number): readonly string[] =>
  removalParts(
    [...chains],
    rules.split(' ').map((rule) => ({ chain: rule[0] ?? '', spec: '', target: rule[2] ?? '' })),
    size,
  ).map((part) => part.join(''));

test.each([
  ['few chains are one part, in any order', 'CBA', 'A>B B>C', 3, ['CBA']],
  ['none are no part', '', '', 3, []],
  ['what leads to a chain comes before it', 'CBA', 'A>B B>C', 1, ['A', 'B', 'C']],
  ['reached by several ways', 'DCBA', 'A>B A>C B>D C>D A>D', 2, ['AB', 'CD']],
  ['twice is no more than once', 'BAC', 'A>B A>B B>C', 1, ['A', 'B', 'C']],
  ['chains that stay do not count', 'BA', 'X>B A>Y A>B', 1, ['A', 'B']],
  ['what leads in a circle is one last part', 'DCBA', 'A>B B>C C>B C>D', 1, ['A', 'DCB']],
] as const)('%s', (_, chains, rules, size, expected) => {
  expect(parts(chains, rules, size)).toEqual(expected);
});
