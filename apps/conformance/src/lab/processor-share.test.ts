import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { processorShare } from './processor-share.ts';

const { signal } = new AbortController();

test('a program that shares a processor gets less than all of it', async () => {
  const other = spawn('taskset', ['-c', '0', process.execPath, '-e', 'while (true);'], { timeout: 60_000 });
  try {
    await once(other, 'spawn');
    const share = (): Promise<number> => processorShare(signal, ['taskset', '-c', '0']);
    await expect.poll(share).toBeLessThan(0.75);
  } finally {
    other.kill('SIGKILL');
  }
});

test('it is measured where output is coloured', async () => {
  expect(await processorShare(signal, ['env', 'FORCE_COLOR=3'])).toBeGreaterThan(0);
});

test('a program that cannot measure is an error', async () => {
  await expect(processorShare(signal, ['false'])).rejects.toThrow('cannot measure how fast programs run');
});
