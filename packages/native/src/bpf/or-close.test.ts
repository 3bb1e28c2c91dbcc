import { openSync, readlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { NativeError } from '../native-error.ts';
import { KernelLink } from './kernel-link.ts';
import { KernelProgram } from './kernel-program.ts';
import { asMap } from './open-map.ts';

const file = fileURLToPath(import.meta.url);

/** Whether the descriptor is that of the file still; another one may have the number by now. */
function isOpen(fd: number): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`) === file;
  } catch {
    return false;
  }
}

test.each<[sentence: string, take: (fd: number) => unknown]>([
  ['link', (fd) => new KernelLink(fd, 'a link')],
  ['program', (fd) => new KernelProgram(fd, 'a program')],
  ['map', (fd) => asMap(fd, 'a map')],
])('a descriptor of which the kernel does not tell which %s it is does not stay open', (_, take) => {
  const fd = openSync(file, 'r');
  expect(isOpen(fd)).toBe(true);
  expect(() => take(fd)).toThrow(NativeError);
  expect(isOpen(fd)).toBe(false);
});
