import { seconds } from '@switchyard/core';
import type { CommandOptions, CommandResult, CommandRunner } from '@switchyard/host';
import { expect, test } from 'vitest';
import { OwnProcesses } from './own-processes.ts';

const done: CommandResult = { exitCode: 0, stdout: '', stderr: '' };
const options: CommandOptions = { timeout: seconds(1), signal: new AbortController().signal };

/** Each run gets the next process id, and ends when the result of `run` is called. */
function bench() {
  const ends: (() => void)[] = [];
  let pid = 100;
  const inner: CommandRunner = {
    run: (_, __, { onStart }) =>
      new Promise((resolve) => {
        onStart?.(++pid);
        ends.push(() => resolve(done));
      }),
  };
  const own = new OwnProcesses();
  const runner = own.runner(inner);
  return { own, ends, run: (more: Partial<CommandOptions> = {}) => runner.run('x', [], { ...options, ...more }) };
}

function look(own: OwnProcesses, times: number): void {
  for (let count = 0; count < times; count++) own.noteLook();
}

test('a process counts as own from its start until notices were polled for a second after its end', async () => {
  const { own, ends, run } = bench();
  const running = run();
  expect(own.has(101)).toBe(true);
  look(own, 100);
  expect(own.has(101)).toBe(true);
  ends[0]?.();
  await running;
  look(own, 10);
  expect(own.has(101)).toBe(true);
  look(own, 1);
  expect(own.has(101)).toBe(false);
});

test('no other process counts as own', () => {
  const { own, run } = bench();
  void run();
  expect(own.has(102)).toBe(false);
});

test('a caller with onStart gets the process id', async () => {
  const { ends, run } = bench();
  const told: number[] = [];
  const running = run({ onStart: (pid) => told.push(pid) });
  ends[0]?.();
  expect(await running).toBe(done);
  expect(told).toEqual([101]);
});

test('without polls, the oldest are forgotten', async () => {
  const { own, ends, run } = bench();
  for (let count = 0; count < 100; count++) {
    const running = run();
    ends[count]?.();
    await running;
  }
  expect(own.has(101)).toBe(false);
  expect(own.has(200)).toBe(true);
});

test('a process that fails is forgotten as well', async () => {
  const own = new OwnProcesses();
  const failing: CommandRunner = {
    run: async (_, __, { onStart }) => {
      onStart?.(7);
      throw new Error('killed');
    },
  };
  await expect(own.runner(failing).run('x', [], options)).rejects.toThrow('killed');
  look(own, 11);
  expect(own.has(7)).toBe(false);
});
