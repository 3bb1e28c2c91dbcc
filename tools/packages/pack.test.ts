import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { root } from '../workspace.ts';
import { publicPackages, withDependencies } from './pack.ts';

interface Manifest {
  readonly description?: string;
  readonly license?: string;
  readonly engines?: { readonly node?: string };
  readonly exports?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly files?: readonly string[];
  readonly scripts?: Readonly<Record<string, string>>;
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as Manifest;
}

const { engines } = manifestOf('.');

for (const { folder } of publicPackages()) {
  test(`${folder} says what npm shows and checks: description, licence, engines, exports, files`, () => {
    const manifest = manifestOf(folder);
    assert.match(manifest.description ?? '', /^[A-Z].{20,}[^.]$/);
    const hasBpf = folder === 'packages/backend-ebpf';
    assert.equal(manifest.license, hasBpf ? 'Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)' : 'Apache-2.0');
    assert.deepEqual(manifest.engines, engines);
    assert.equal(manifest.scripts?.['prepack'], 'cp ../../LICENSE .');
    assert.ok(manifest.files?.includes('dist'), 'files');
    assert.ok(manifest.exports?.['.'] !== undefined, 'exports');
    for (const [entry, targets] of Object.entries(manifest.exports)) {
      // The conditions are read in order: types before code, and this checkout's sources before both.
      assert.deepEqual(Object.keys(targets), ['@switchyard/source', 'types', 'default'], entry);
    }
    assert.match(readFileSync(join(root, folder, 'README.md'), 'utf8'), /^# @switchyard\/[\w-]+\n/);
  });
}

test('a named package comes with those that it depends on', () => {
  const names = (...of: readonly string[]): readonly string[] => withDependencies(of).map(({ name }) => name);
  assert.deepEqual(names('core'), ['@switchyard/core']);
  assert.deepEqual(names('@switchyard/loss', 'core'), ['@switchyard/core', '@switchyard/loss']);
  const scenarios = names('scenarios');
  for (const name of ['scenarios', 'backend-ebpf', 'netfilter', 'native', 'core']) {
    assert.ok(scenarios.includes(`@switchyard/${name}`), name);
  }
  assert.ok(!scenarios.includes('@switchyard/lab'));
  assert.deepEqual(
    names(),
    publicPackages().map(({ name }) => name),
  );
});

for (const [args, status, text] of [
  [['--help'], 0, /^usage: \.\/dev pack \[FOLDER\]/],
  [['--package', 'kore'], 1, /^pack: there is no public package 'kore', only conformance, backend-ebpf, /],
  [['a', 'b'], 1, /^pack: one folder at a time, not also b; see \.\/dev pack --help\n$/],
] as const) {
  test(`./dev pack ${args.join(' ')} ends with ${status} before it builds anything`, () => {
    const program = join(import.meta.dirname, 'run.ts');
    const env = { ...process.env, NODE_NO_WARNINGS: '1' };
    const all = ['--conditions=@switchyard/source', program, ...args];
    const result = spawnSync(process.execPath, all, { encoding: 'utf8', env, timeout: 60_000 });
    assert.equal(result.status, status, result.stderr);
    assert.match(result.stdout + result.stderr, text);
  });
}
