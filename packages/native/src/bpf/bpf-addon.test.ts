import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { NativeMissingError } from '../addon.ts';
import { loadBpfAddon } from './bpf-addon.ts';

const built = fileURLToPath(new URL('../../build/switchyard_bpf.node', import.meta.url));

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(`${tmpdir()}/swy-bpf-`);
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

test('an addon that was not built is named, with what to do', async () => {
  const folder = await emptyFolder();
  const load = (): unknown => loadBpfAddon([pathToFileURL(`${folder}/switchyard_bpf.node`)]);
  expect(load).toThrow(NativeMissingError);
  expect(load).toThrow(
    'the native addon switchyard_bpf.node is missing: build it with ./dev build, use the image agent-ebpf, or use another mode than ebpf',
  );
});

test('the error of a machine without libbpf names the package', async () => {
  const folder = await emptyFolder();
  const file = Buffer.from(await readFile(built));
  // A library of a version that does not exist stands for one that is not installed.
  const name = Buffer.from('libbpf.so.1\0');
  for (let at = file.indexOf(name); at >= 0; at = file.indexOf(name)) file.write('libbpf.so.9', at);
  await writeFile(`${folder}/switchyard_bpf.node`, file);
  const load = (): unknown => loadBpfAddon([pathToFileURL(`${folder}/switchyard_bpf.node`)]);
  expect(load).toThrow(NativeMissingError);
  expect(load).toThrow(
    /^cannot load the native addon switchyard_bpf\.node: libbpf\.so\.9: cannot open shared object file.*; install the shared library it needs \(Debian: libbpf1\)$/,
  );
});

test('of the libraries it needs, libbpf is the only one that Node does not bring', () => {
  const librariesOf = (file: string): readonly string[] =>
    [...execFileSync('readelf', ['-d', file], { encoding: 'utf8' }).matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(
      ([, library = '']) => library,
    );
  const brought = librariesOf(process.execPath);
  expect(librariesOf(built).filter((library) => !brought.includes(library))).toEqual(['libbpf.so.1']);
});

test.each([6, 7, 100])('%i buffers to point at: more than six are refused', (pairs) => {
  const attribute = new Uint8Array(new ArrayBuffer(8));
  const pointers = Array.from({ length: pairs }, () => [0, new Uint8Array(new ArrayBuffer(8))]).flat();
  const noCommand = 0x7fff;
  const result = loadBpfAddon().bpf(noCommand, attribute, ...pointers);
  if (pairs > 6) expect(result).toBe(-constants.errno.E2BIG);
  else expect([-constants.errno.EINVAL, -constants.errno.EPERM]).toContain(result);
});
