import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, onTestFinished, test, vi } from 'vitest';
import { collectGarbage, releaseMemoryAtRest } from './release-memory.ts';

test.each(['preferQuickStart', 'preferLittleMemory', 'collectGarbage'])(
  'V8 knows the flags of %s: it would name an unknown one and go on',
  async (name) => {
    const url = JSON.stringify(new URL('release-memory.ts', import.meta.url).href);
    const program = `(await import(${url})).${name}()`;
    const { stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
    expect(stderr).toBe('');
  },
);

test('all garbage is collected, without a flag on the command line', async () => {
  const lost = new WeakRef({});
  await new Promise((resolve) => setImmediate(resolve)); // until then a WeakRef keeps its object
  collectGarbage();
  expect(lost.deref()).toBeUndefined();
});

test('memory is released once, a minute after the last of many changes', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const release = vi.fn();
  const onChange = releaseMemoryAtRest(release);
  for (let count = 0; count < 499; count++) onChange();
  expect(vi.getTimerCount()).toBe(0); // nothing wakes an agent with few changes
  vi.advanceTimersByTime(600_000);
  onChange();
  vi.advanceTimersByTime(50_000);
  onChange();
  vi.advanceTimersByTime(59_999);
  expect(release).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(release).toHaveBeenCalledOnce();
  onChange();
  vi.advanceTimersByTime(600_000);
  expect(release).toHaveBeenCalledOnce();
  for (let count = 0; count < 500; count++) onChange();
  vi.advanceTimersByTime(60_000);
  expect(release).toHaveBeenCalledTimes(2);
});
