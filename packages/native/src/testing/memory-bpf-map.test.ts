import { expect, test } from 'vitest';
import { mapCases } from './map-cases.ts';
import { MemoryBpfMap } from './memory-bpf-map.ts';

test.each(mapCases)('in memory, $title', ({ shape, act, expected }) => {
  expect(act(new MemoryBpfMap(shape, { cpus: 3 }), 3)).toEqual(expected);
});

test('maps in memory have ids of their own', () => {
  const { shape } = mapCases[0]!;
  expect(new MemoryBpfMap(shape).id).not.toBe(new MemoryBpfMap(shape).id);
});
