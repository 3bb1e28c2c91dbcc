import { expect, test } from 'vitest';
import { together } from './together.ts';

const untilAborted = (ended: string[], name: string) => (signal: AbortSignal) =>
  new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => {
      ended.push(name);
      reject(signal.reason);
    }),
  );

test('when one fails, the others are stopped first, and its error is told', async () => {
  const ended: string[] = [];
  const broken = new Error('broken');
  const tasks = [untilAborted(ended, 'a'), () => Promise.reject(broken), untilAborted(ended, 'c')];
  await expect(together(tasks, new AbortController().signal)).rejects.toBe(broken);
  expect(ended).toEqual(['a', 'c']);
});

test('the abort stops all', async () => {
  const ended: string[] = [];
  const stop = new AbortController();
  const running = together([untilAborted(ended, 'a'), untilAborted(ended, 'b')], stop.signal);
  stop.abort(new Error('stopped'));
  await expect(running).rejects.toThrow('stopped');
  expect(ended).toEqual(['a', 'b']);
});
