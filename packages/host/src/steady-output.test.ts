import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, test, expect, vi } from 'vitest';
import { steadyOutput, type SteadyOutput } from './logger.ts';

/** The two ends of a pipe. The writing end blocks, as a process's stderr does. */
function pipe(): { readonly reader: number; readonly writer: number } {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-'));
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY);
  rmSync(folder, { recursive: true });
  return { reader, writer };
}

function read(fd: number): string {
  const buffer = Buffer.alloc(1_000_000);
  let text = '';
  try {
    for (let n = readSync(fd, buffer); n > 0; n = readSync(fd, buffer)) text += buffer.toString('utf8', 0, n);
  } catch {
    // EAGAIN: all has been read
  }
  return text;
}

const line = (number: number): string => `${String(number).padStart(9, '0')} ${'x'.repeat(89)}\n`;
const numbers = (text: string): readonly number[] => (text.match(/^\d{9} x{89}$/gm) ?? []).map((one) => parseInt(one));
const upTo = (end: number, from = 0): readonly number[] => Array.from({ length: end - from }, (_, at) => from + at);

class Told {
  readonly lost: string[] = [];
  readonly onLost = (count: number, error: Error): void => {
    this.lost.push(`${count} ${(error as NodeJS.ErrnoException).code}`);
  };
}

function writeLines(output: SteadyOutput, count: number): void {
  for (const number of upTo(count)) output.write(line(number));
}

test('lines that fit are in the pipe when write returns', () => {
  const { reader, writer } = pipe();
  writeLines(steadyOutput({ fd: writer, onLost: () => undefined }), 10);
  expect(numbers(read(reader))).toEqual(upTo(10));
});

test('a reader that does not read does not block the process; some lines wait, whole and in order, the rest is counted', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { reader, writer } = pipe();
  const told = new Told();
  const output = steadyOutput({ fd: writer, onLost: told.onLost, capacity: 10_000 });
  writeLines(output, 2000); // 200 KB; a pipe holds 64 KiB
  let text = read(reader);
  const inPipe = Math.floor(text.length / 100);
  expect(told.lost).toEqual([]);
  vi.advanceTimersByTime(250);
  text += read(reader);
  const kept = numbers(text).length;
  expect(numbers(text)).toEqual(upTo(kept));
  expect(kept - inPipe).toBeGreaterThanOrEqual(99);
  expect(kept - inPipe).toBeLessThanOrEqual(102);
  expect(told.lost).toEqual([`${2000 - kept} EAGAIN`]);
  output.write(line(7));
  expect(numbers(read(reader))).toEqual([7]);
});

test.each([
  ['a full disk', () => openSync('/dev/full', constants.O_WRONLY)],
  [
    'a reader that has gone',
    () => {
      const { reader, writer } = pipe();
      closeSync(reader);
      return writer;
    },
  ],
])(
  '%s is no error; nothing is called lost before something can be said, at the end of the process neither',
  (...row) => {
    const told = new Told();
    const output = steadyOutput({ fd: row[1](), onLost: told.onLost });
    writeLines(output, 5000);
    output.flush();
    expect(told.lost).toEqual([]);
  },
);
