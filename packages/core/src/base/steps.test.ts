import { expect, test } from 'vitest';
import { seededRandom } from '../testing/seeded-random.ts';
import { finish, sortInSteps } from './steps.ts';

test.each([0, 1, 999, 1000, 1001, 2000, 4500, 10_000])('%i values are sorted as by sort, which is stable', (length) => {
  const random = seededRandom(`${length} values`);
  const values = Array.from({ length }, (_, index) => ({ weight: Math.floor(random() * 50), index }));
  const compare = (a: (typeof values)[number], b: (typeof values)[number]): number => a.weight - b.weight;
  const wanted = values.toSorted(compare);
  expect(finish(sortInSteps(values, compare))).toEqual(wanted);
});

test('no step of a sort compares more than a run needs', () => {
  let compared = 0;
  let most = 0;
  const random = seededRandom('steps');
  const steps = sortInSteps(
    Array.from({ length: 20_000 }, () => random()),
    (a, b) => (compared++, a - b),
  );
  while (steps.next().done !== true) {
    most = Math.max(most, compared);
    compared = 0;
  }
  expect(most).toBeLessThan(1000 * Math.log2(1000));
});
