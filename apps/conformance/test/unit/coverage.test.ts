import { dataplaneNames } from '@switchyard/scenarios';
import { describe, expect, test } from 'vitest';
import { globPattern } from '../../src/engine/select-cases.ts';
import { catalogue } from '../../src/cases/catalogue.ts';
import { coverage } from './coverage.ts';

const lastRow = 41;
const cases = dataplaneNames.flatMap((dataplane) => catalogue({ dataplane, cell: 'dual' }));
const matching = (glob: string): readonly string[] =>
  cases.filter(({ id, notFor }) => notFor === undefined && globPattern(glob).test(id)).map(({ id }) => id);

test('every row of the table of Service features is there once, in order', () => {
  expect(coverage.map(({ row }) => row)).toEqual(Array.from({ length: lastRow }, (_, index) => index + 1));
});

describe('a feature has cases, or a reason why packets cannot show it', () => {
  test.each(coverage.map((one) => [one.row, one.feature, one] as const))('%i %s', (_row, _feature, one) => {
    if (one.status === 'untold') expect(one.because.length).toBeGreaterThan(20);
    else {
      expect(one.cases.length).toBeGreaterThan(0);
      expect(one.cases.filter((glob) => matching(glob).length === 0)).toEqual([]);
    }
  });
});
