import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { runProgram } from '../../../debian/run-program.ts';
import { root } from '../../../workspace.ts';
import { packPackage, type Pack, publicPackages } from '../../pack.ts';

// The packages as npm would deliver them, made from the output of `tsc -b`.

const { signal } = new AbortController();
const packages = publicPackages();
const packs = new Map<string, Pack>();
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'swy-pack-'));
  const all = await Promise.all(packages.map((one) => packPackage(one.folder, folder, signal)));
  for (const [index, pack] of all.entries()) packs.set(packages[index]?.folder ?? '', pack);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** Files beside the compiled code that a package carries, and why it would not work without. */
const extras: Readonly<Record<string, readonly RegExp[]>> = {
  'packages/scenarios': [/^scenarios\/[a-z0-9-]+\.yaml$/],
  'packages/backend-ebpf': [/^build\/(socket|wire|pick)\.bpf\.o$/, /^bpf\/LICENSE$/],
  'packages/native': [/^build\/switchyard_\w+\.node$/, /^CMakeLists\.txt$/, /^(bpf|cpp|cmake)\/[\w.-]+$/],
  'apps/conformance': [/^bin\/switchyard-conformance$/],
};

for (const { folder: path } of packages) {
  test(`${path} packs its compiled code, its licence, its page, and nothing else`, () => {
    const pack = packs.get(path);
    assert.ok(pack);
    const wanted = [
      /^dist\/(?!.*\.test\.).*\.(js|d\.ts)$/,
      /^(package\.json|LICENSE|README\.md)$/,
      ...(extras[path] ?? []),
    ];
    const strange = pack.files.filter((file) => !wanted.some((pattern) => pattern.test(file)));
    assert.deepEqual(strange, []);
    for (const file of ['LICENSE', 'README.md', ...entryFiles(path)]) assert.ok(pack.files.includes(file), file);
    for (const pattern of extras[path] ?? [])
      assert.ok(
        pack.files.some((file) => pattern.test(file)),
        String(pattern),
      );
  });

  test(`${path} says nothing of the machine it was packed on`, async () => {
    const { stdout } = await runProgram('tar', ['-xOzf', packs.get(path)?.tarball ?? ''], { signal });
    assert.ok(!stdout.includes(root), `${root} is in a file of the pack`);
  });
}

function entryFiles(path: string): readonly string[] {
  const manifest = JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, Readonly<Record<string, string>>>>;
    readonly bin?: Readonly<Record<string, string>>;
  };
  const targets = Object.values(manifest.exports).flatMap((entry) => [entry['types'] ?? '', entry['default'] ?? '']);
  return [...targets, ...Object.values(manifest.bin ?? {})].map((target) => target.replace(/^\.\//, ''));
}
