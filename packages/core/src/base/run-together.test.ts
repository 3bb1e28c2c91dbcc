import { expect, test } from 'vitest';
import { runTogether } from './abortable.ts';

const untilAborted = (ended: string[], name: string) => (signal: AbortSignal) =>
  new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => {
      ended.push(name);
      reject(signal.reason);
    }),
  );

test('when one task fails, the others end first, and its error is the result', async () => {
  const ended: string[] = [];
  const broken = new Error('broken');
  const tasks = [untilAborted(ended, 'a'), () => Promise.reject(broken), untilAborted(ended, 'c')];
  await expect(runTogether(tasks, new AbortController().signal)).rejects.toBe(broken);
  expect(ended).toEqual(['a', 'c']);
});

test('the abort ends all tasks without an error', async () => {
  const ended: string[] = [];
  const stop = new AbortController();
  const running = runTogether([untilAborted(ended, 'a'), untilAborted(ended, 'b')], stop.signal);
  stop.abort(new Error('stopped'));
  await expect(running).resolves.toBeUndefined();
  expect(ended).toEqual(['a', 'b']);
});
