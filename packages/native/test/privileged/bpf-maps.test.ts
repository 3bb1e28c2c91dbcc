import { expect, test } from 'vitest';
import { createMap, possibleCpus } from '../../src/index.ts';
import { mapCases } from '../../src/testing/map-cases.ts';

test.each(mapCases)('in the kernel, $title', ({ shape, act, expected }) => {
  using map = createMap(shape);
  expect(map.shape).toEqual(shape);
  expect(act(map, possibleCpus())).toEqual(expected);
});
