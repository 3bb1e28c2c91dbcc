import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { writeTerminationMessage } from './run-app.ts';

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'switchyard-termination-'));
  file = join(folder, 'termination-log');
});

afterEach(() => rm(folder, { recursive: true }));

test('the text replaces what the file holds', async () => {
  await writeFile(file, 'a longer text of an earlier container');
  writeTerminationMessage(file, 'the reason');
  expect(await readFile(file, 'utf8')).toBe('the reason');
});

test('4,096 bytes are written at most, and no half of a character', async () => {
  await writeFile(file, '');
  writeTerminationMessage(file, `${'x'.repeat(4095)}é and more`);
  expect(await readFile(file, 'utf8')).toBe('x'.repeat(4095));
});

test('a file that kubelet did not make is not made', async () => {
  writeTerminationMessage(file, 'the reason');
  expect(await readdir(folder)).toEqual([]);
});

test('a folder in its place changes nothing', () => {
  expect(() => writeTerminationMessage(folder, 'the reason')).not.toThrow();
});
