import { execFileSync } from 'node:child_process';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { loadAddon, NativeMissingError } from './addon.ts';

async function emptyFolder(name: string): Promise<string> {
  const folder = await mkdtemp(`${tmpdir()}/${name}`);
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

test('an addon that was not built is named, with what to do', async () => {
  const folder = await emptyFolder('swy-native-');
  const load = (): unknown => loadAddon([pathToFileURL(`${folder}/switchyard_native.node`)]);
  expect(load).toThrow(NativeMissingError);
  expect(load).toThrow(
    'the native addon switchyard_native.node is missing: build it with ./dev build, or use a build that has it',
  );
});

test('the error of an addon for another machine differs from that of a missing one', async () => {
  const folder = await emptyFolder('swy-native-');
  await writeFile(`${folder}/switchyard_native.node`, 'this is no shared object');
  const load = (): unknown => loadAddon([pathToFileURL(`${folder}/switchyard_native.node`)]);
  expect(load).toThrow(NativeMissingError);
  expect(load).toThrow(/^cannot load the native addon switchyard_native\.node: .*; build it for this machine with/);
});

test('the first place that has it counts, with any characters in its path', async () => {
  const folder = await emptyFolder('swy native %20 ü-');
  const built = new URL('../build/switchyard_native.node', import.meta.url);
  await copyFile(built, `${folder}/switchyard_native.node`);
  const places = ['missing.node', 'switchyard_native.node'].map((name) => pathToFileURL(`${folder}/${name}`));
  expect(typeof loadAddon(places).openNetlink).toBe('function');
});

test('it needs no library that Node itself does not need', () => {
  const librariesOf = (file: string): readonly string[] =>
    [...execFileSync('readelf', ['-d', file], { encoding: 'utf8' }).matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(
      ([, library = '']) => library,
    );
  const needed = librariesOf(fileURLToPath(new URL('../build/switchyard_native.node', import.meta.url)));
  expect(needed).toContain('libc.so.6');
  const brought = librariesOf(process.execPath);
  expect(needed.filter((library) => !brought.includes(library))).toEqual([]);
});
