import assert from 'node:assert/strict';
import { mkdtemp, open, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { mirrorIn, parseSimulation } from './apt.ts';
import { debianRoot, packageListFile } from './debian-root.ts';

const signal = AbortSignal.timeout(600_000);

test('what apt would install is read from its simulation, upgrades and foreign architectures too', () => {
  const text = [
    'The following NEW packages will be installed:',
    'Inst libc6 (2.36-9+deb12u14 Debian:12.12/oldstable [arm64]) []',
    'Inst ca-certificates [1] (20230311 Debian:12/stable, Debian-Security [all])',
    'Inst libfoo:amd64 (2:1.0 Debian:12/stable [amd64])',
    'Conf libc6 (2.36-9+deb12u14 Debian:12/stable [arm64])',
  ].join('\n');
  assert.deepEqual(parseSimulation(text), [
    { name: 'ca-certificates', version: '20230311', architecture: 'all' },
    { name: 'libc6', version: '2.36-9+deb12u14', architecture: 'arm64' },
    { name: 'libfoo', version: '2:1.0', architecture: 'amd64' },
  ]);
});

test("this machine's mirror of Debian is read out of apt's sources", () => {
  const deb822 =
    'Types: deb\n# http://snapshot.debian.org/archive/debian/2025\nURIs: http://mirror.example/debian\nSuites: bookworm\n';
  assert.equal(
    mirrorIn(`deb https://deb.nodesource.com/node_20.x nodistro main\n${deb822}`),
    'http://mirror.example/debian',
  );
  assert.equal(
    mirrorIn('# deb http://old/debian x\ndeb [arch=amd64] https://new.example/debian/ bookworm main'),
    'https://new.example/debian/',
  );
  assert.equal(mirrorIn('URIs: http://security.debian.org/debian-security\n'), undefined);
});

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
