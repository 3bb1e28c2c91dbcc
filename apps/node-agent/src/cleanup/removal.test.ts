import { expect, test } from 'vitest';
import { joinRemovals, nothingRemoved, removalOf, removalText } from './removal.ts';

const { signal } = new AbortController();

test('the report has a line for everything, in the order of what counts most', () => {
  const one = {
    ...nothingRemoved,
    removed: ['table a'],
    skipped: ['iptables-legacy: iptables-legacy is not installed'],
  };
  const other = {
    ...nothingRemoved,
    removed: ['table b'],
    kept: ['chain c: why'],
    failures: [new Error('two\nlines'), new Error('no right; will be tried again')],
  };
  expect(removalText(joinRemovals([one, other]))).toBe(
    [
      'removed: table a',
      'removed: table b',
      'kept: chain c: why',
      'not looked at: iptables-legacy: iptables-legacy is not installed',
      'failed: two | lines',
      'failed: no right',
      '',
    ].join('\n'),
  );
});

test('nothing is said to be nothing, also where something was not looked at', () => {
  expect(removalText(nothingRemoved)).toBe('nothing to remove\n');
  expect(removalText({ ...nothingRemoved, skipped: ['x: why'] })).toBe('nothing to remove\nnot looked at: x: why\n');
});

test('a part that throws is a failure, unless all was to end', async () => {
  const error = new Error('broken');
  expect((await removalOf(() => Promise.reject(error), signal)).failures).toEqual([error]);
  await expect(removalOf(() => Promise.reject(error), AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop');
});
