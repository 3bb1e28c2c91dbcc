import { expect, test } from 'vitest';
import { KeyedMutex } from './keyed-mutex.ts';

const { signal } = new AbortController();

test('work of one key runs in its order, of two keys at once; a failure stops no other work', async () => {
  const mutex = new KeyedMutex();
  const steps: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = mutex.run(
    'a',
    async () => {
      steps.push('first begins');
      await gate.promise;
      throw new Error('broken');
    },
    signal,
  );
  const second = mutex.run('a', () => Promise.resolve(void steps.push('second')), signal);
  await mutex.run('b', () => Promise.resolve(void steps.push('other')), signal);
  expect(steps).toEqual(['first begins', 'other']);
  gate.resolve();
  await expect(first).rejects.toThrow('broken');
  await second;
  expect(steps).toEqual(['first begins', 'other', 'second']);
});

test('one that is aborted before its turn gives it up, and the next still waits for the one at work', async () => {
  const mutex = new KeyedMutex();
  const steps: string[] = [];
  const gate = Promise.withResolvers<void>();
  const working = mutex.run('a', () => gate.promise, signal);
  const controller = new AbortController();
  const waiting = mutex.run('a', () => Promise.resolve(void steps.push('never')), controller.signal);
  const next = mutex.run('a', () => Promise.resolve(void steps.push('next')), signal);
  controller.abort(new Error('no longer wanted'));
  await expect(waiting).rejects.toThrow('no longer wanted');
  expect(steps).toEqual([]);
  gate.resolve();
  await working;
  await next;
  expect(steps).toEqual(['next']);
});
