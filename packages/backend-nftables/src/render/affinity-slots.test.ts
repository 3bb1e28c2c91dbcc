import { describe, expect, test } from 'vitest';
import { assignNumbers, maxAffinityEndpoints, noNumbers, recoverNumbers } from './affinity-slots.ts';

const pairs = (numbers: ReturnType<typeof assignNumbers>): object => Object.fromEntries(numbers.byEndpoint);

describe('assignNumbers', () => {
  test('begins with 1', () => {
    expect(pairs(assignNumbers(noNumbers, ['a', 'b']))).toEqual({ a: 1, b: 2 });
  });

  test.each<[string, readonly (readonly string[])[], object]>([
    ['an endpoint keeps its number when others come and go', [['a', 'b', 'c'], ['c'], ['d', 'c']], { c: 3, d: 4 }],
    ['the number of one that left is not the next to be given out', [['a', 'b'], ['a'], ['a', 'c']], { a: 1, c: 3 }],
    ['one that left and came back is a new one', [['a', 'b'], ['a'], ['a', 'b']], { a: 1, b: 3 }],
    [
      'the order does not matter',
      [
        ['a', 'b'],
        ['b', 'a'],
      ],
      { a: 1, b: 2 },
    ],
    ['no endpoint is left', [['a'], []], {}],
  ])('%s', (_, steps, expected) => {
    expect(pairs(steps.reduce((numbers, step) => assignNumbers(numbers, step), noNumbers))).toEqual(expected);
  });

  test('after the last number comes the first free one', () => {
    const previous = { byEndpoint: new Map([['a', 1]]), next: maxAffinityEndpoints };
    expect(pairs(assignNumbers(previous, ['a', 'b', 'c']))).toEqual({ a: 1, b: maxAffinityEndpoints, c: 2 });
  });

  test('a number comes round after all others', () => {
    let numbers = assignNumbers(noNumbers, ['stays', 'x0']);
    const seen = new Set<number>();
    for (let round = 1; round < maxAffinityEndpoints - 1; round++) {
      seen.add(numbers.byEndpoint.get(`x${round - 1}`)!);
      numbers = assignNumbers(numbers, ['stays', `x${round}`]);
      expect(seen.has(numbers.byEndpoint.get(`x${round}`)!)).toBe(false);
    }
  });

  test('a set may be full', () => {
    const names = Array.from({ length: maxAffinityEndpoints }, (_, index) => `e${index}`);
    const { byEndpoint } = assignNumbers({ byEndpoint: new Map([['e7', 4000]]), next: 17 }, names);
    expect(new Set(byEndpoint.values()).size).toBe(maxAffinityEndpoints);
    expect(Math.max(...byEndpoint.values())).toBe(maxAffinityEndpoints);
    expect(byEndpoint.get('e7')).toBe(4000);
  });
});

describe('recoverNumbers', () => {
  test.each<[string, ReadonlyMap<number, string>, object, number]>([
    ['nothing', new Map(), {}, 1],
    ['the next one lies above the highest', new Map([[9, 'a'], [4, 'b']]), { a: 9, b: 4 }, 10], // prettier-ignore
    ['above the last comes the first', new Map([[4095, 'a']]), { a: 4095 }, 1],
    ['an endpoint with two numbers keeps the lower', new Map([[5, 'a'], [3, 'a']]), { a: 3 }, 6], // prettier-ignore
  ])('%s', (_, byNumber, expected, next) => {
    const numbers = recoverNumbers(byNumber);
    expect([pairs(numbers), numbers.next]).toEqual([expected, next]);
  });
});
