import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { runProgram } from '../../../debian/run-program.ts';
import { root } from '../../../workspace.ts';
import { packPackage, publicPackages } from '../../pack.ts';

// The packages as installed from npm: outside of this checkout, without its sources.

const signal = AbortSignal.timeout(500_000);
const tsc = join(root, 'node_modules/.bin/tsc');
const example = join(root, 'examples/node-endpoints');
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'swy-install-'));
  const packs = [];
  for (const { folder: path } of publicPackages()) packs.push(await packPackage(path, join(folder, 'packs'), signal));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'user', private: true, type: 'module' }));
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  await runProgram('npm', ['install', ...flags, ...packs.map(({ tarball }) => tarball)], { cwd: folder, signal });
  await cp(join(root, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'), { recursive: true });
  await cp(join(root, 'node_modules/undici-types'), join(folder, 'node_modules/undici-types'), { recursive: true });
  await mkdir(join(folder, 'src'));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

test('the examples of all pages compile against the installed packages, and so does the example tool', async () => {
  const pages = [
    ...publicPackages().map((one) => join(root, one.folder, 'README.md')),
    join(root, 'docs/build-on/library.md'),
  ];
  let examples = 0;
  for (const page of pages) {
    const blocks = [...(await readFile(page, 'utf8')).matchAll(/^```ts\n(.*?)^```$/gms)];
    assert.ok(blocks.length > 0, `${page} has no example`);
    for (const [, code = ''] of blocks) await writeFile(join(folder, `src/example-${(examples += 1)}.ts`), code);
  }
  for (const file of await readdir(join(example, 'src'))) {
    if (!file.endsWith('.test.ts')) await cp(join(example, 'src', file), join(folder, 'src', file));
  }
  const options = {
    extends: join(root, 'tsconfig.base.json'),
    compilerOptions: { rootDir: 'src', outDir: 'out', composite: false, incremental: false, customConditions: [] },
    include: ['src'],
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(options));
  await runProgram(tsc, ['-p', folder], { cwd: folder, signal });
});

test('the example tool runs on the installed packages', async () => {
  const args = ['out/main.js', '--node', 'worker1', join(example, 'cluster.yaml')];
  const { stdout } = await runProgram(process.execPath, args, { cwd: folder, signal });
  assert.match(stdout, /from outside: 10\.244\.1\.5 port 8080 \(this node, terminating\)/);
});

test('every entry point can be imported', async () => {
  const names: string[] = [];
  for (const { folder: path } of publicPackages()) {
    const text = await readFile(join(root, path, 'package.json'), 'utf8');
    const { name, exports } = JSON.parse(text) as { readonly name: string; readonly exports: object };
    names.push(...Object.keys(exports).map((entry) => `${name}${entry.slice(1)}`));
  }
  const program = `for (const name of ${JSON.stringify(names)}) if (Object.keys(await import(name)).length === 0) throw new Error(name);`;
  await writeFile(join(folder, 'import-all.js'), program);
  await runProgram(process.execPath, ['import-all.js'], { cwd: folder, signal });
});

test('the scenarios come along and hold for the installed core', async () => {
  const program = `import { allScenarios, runOnTable } from '@switchyard/scenarios';
const steps = allScenarios().filter(({ altitudes }) => altitudes.run.includes('table')).flatMap((one) => runOnTable(one).steps);
console.log(steps.length, steps.filter(({ isAsExpected }) => !isAsExpected).length);`;
  await writeFile(join(folder, 'scenarios.js'), program);
  const { stdout } = await runProgram(process.execPath, ['scenarios.js'], { cwd: folder, signal });
  const [steps = 0, wrong] = stdout.trim().split(' ').map(Number);
  assert.ok(steps > 500, `${steps} steps`);
  assert.equal(wrong, 0);
});

test('the conformance runner lists its cases', async () => {
  const { stdout } = await runProgram('node_modules/.bin/switchyard-conformance', ['list'], { cwd: folder, signal });
  assert.match(stdout, /^scenario\/etp-local\/ipv4 /m);
});
