import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { trimMemory } from './addon.ts';

test('trimming finds the addon and leaves the process as it is', () => {
  const kept = Buffer.alloc(100_000, 7);
  trimMemory();
  expect(kept.every((byte) => byte === 7)).toBe(true);
  expect(readFileSync('/proc/self/maps', 'utf8')).toContain('switchyard_native.node');
});
