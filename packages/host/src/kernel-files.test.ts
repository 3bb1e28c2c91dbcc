import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { kernelFiles, sysctlPath } from './kernel-files.ts';

let root: string;
const path = sysctlPath('net.netfilter.nf_conntrack_max');

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'swy-kernel-files-'));
  await mkdir(join(root, 'proc/sys/net/netfilter'), { recursive: true });
  await writeFile(join(root, path), '65536\n');
});

afterEach(() => rm(root, { recursive: true }));

test('the name of a sysctl is a path', () => {
  expect(path).toBe('/proc/sys/net/netfilter/nf_conntrack_max');
});

test('a setting is read without its line end, written, and never made', async () => {
  const files = kernelFiles(root);
  expect(files.read(path)).toBe('65536');
  files.write(path, '131072');
  expect(await readFile(join(root, path), 'utf8')).toContain('131072');
  expect(files.read('/proc/sys/net/none')).toBeUndefined();
  expect(() => files.write('/proc/sys/net/none', '1')).toThrow('cannot write 1 to /proc/sys/net/none: ENOENT');
});

test('what the real kernel refuses is an error that says what, and why', () => {
  const files = kernelFiles();
  // Read-only for everybody.
  const refused = (): void => files.write('/proc/sys/kernel/ostype', 'Linux');
  expect(refused).toThrow(/^cannot write Linux to \/proc\/sys\/kernel\/ostype: E(ACCES|PERM)$/);
});
