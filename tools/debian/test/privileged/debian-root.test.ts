import assert from 'node:assert/strict';
import { mkdtemp, open, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { debianRoot, packageListFile } from '../../debian-root.ts';

const { signal } = new AbortController();

test('packages of another architecture are unpacked once for callers at the same time, without what was excluded', async () => {
  const cache = await mkdtemp(join(tmpdir(), 'swy-debian-'));
  const told: string[] = [];
  try {
    const fetch = (): Promise<string> =>
      debianRoot({
        packages: ['libmnl0'],
        exclude: ['libc6'],
        architecture: 'arm64',
        cache,
        progress: (line) => told.push(line),
        signal,
      });
    const folders = await Promise.all([fetch(), fetch()]);
    assert.equal(folders[0], folders[1]);
    assert.equal(told.length, 2, told.join('\n'));
    assert.match(await readFile(join(folders[0], packageListFile), 'utf8'), /^libmnl0 \S+ arm64\n$/);
    assert.equal(await elfMachine(join(folders[0], 'usr/lib/aarch64-linux-gnu/libmnl.so.0')), 183);
    const missing = debianRoot({
      packages: ['no-such-package'],
      architecture: 'arm64',
      cache,
      progress: () => {},
      signal,
    });
    await assert.rejects(missing, /no-such-package/);
    const left = (await readdir(cache)).filter((name) => name.includes('.partial') || name.includes('.downloads'));
    assert.deepEqual(left, []);
  } finally {
    await rm(cache, { recursive: true, force: true });
  }
});

/** The `e_machine` field of an ELF file; 183 is aarch64. */
async function elfMachine(path: string): Promise<number> {
  await using file = await open(path);
  const { buffer } = await file.read({ buffer: Buffer.alloc(20), position: 0 });
  return buffer.readUInt16LE(18);
}
