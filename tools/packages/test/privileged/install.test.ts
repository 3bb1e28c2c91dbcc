import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { type Output, runProgram } from '../../../debian/run-program.ts';
import { root } from '../../../workspace.ts';
import { type Pack, packPackage, publicPackages } from '../../pack.ts';

// The packages as installed from npm: outside of this checkout, without its sources.

interface Exports {
  readonly name: string;
  readonly exports: object;
}

const { signal } = new AbortController();
const tsc = join(root, 'node_modules/.bin/tsc');
/** Examples that need the model alone. */
const exampleTools = ['node-endpoints', 'drain'];
let folder = '';
/** A project with `@switchyard/core` and nothing else. */
let model = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'swy-install-'));
  const packs = [];
  for (const { folder: path } of publicPackages()) packs.push(await packPackage(path, join(folder, 'packs'), signal));
  await install(folder, packs);
  // Beside the other project: from below it, Node would find that one's packages too.
  model = await mkdtemp(join(tmpdir(), 'swy-model-'));
  await install(
    model,
    packs.filter(({ name }) => name === '@switchyard/core'),
  );
  await cp(join(root, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'), { recursive: true });
  await cp(join(root, 'node_modules/undici-types'), join(folder, 'node_modules/undici-types'), { recursive: true });
  await mkdir(join(folder, 'src'));
});

async function install(project: string, packs: readonly Pack[]): Promise<void> {
  await writeFile(join(project, 'package.json'), JSON.stringify({ name: 'user', private: true, type: 'module' }));
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  await runProgram('npm', ['install', ...flags, ...packs.map(({ tarball }) => tarball)], { cwd: project, signal });
}

afterAll(async () => {
  for (const path of [folder, model]) await rm(path, { recursive: true, force: true });
});

test('the examples of all pages compile against the installed packages, and so do the example tools', async () => {
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
  for (const example of exampleTools) {
    const filter = (path: string): boolean => !path.endsWith('.test.ts');
    await cp(join(root, 'examples', example, 'src'), join(folder, 'src', example), { recursive: true, filter });
  }
  const options = {
    extends: join(root, 'tsconfig.base.json'),
    compilerOptions: { rootDir: 'src', outDir: 'out', composite: false, incremental: false, customConditions: [] },
    include: ['src'],
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(options));
  await runProgram(tsc, ['-p', folder], { cwd: folder, signal });
});

test('the example tools run where @switchyard/core alone is installed', async () => {
  await cp(join(folder, 'out'), join(model, 'out'), { recursive: true });
  const run = (example: string, ...args: readonly string[]): Promise<Output> =>
    runProgram(process.execPath, [`out/${example}/main.js`, '--node', 'worker1', ...args], { cwd: model, signal });
  const { stdout } = await run('node-endpoints', join(root, 'examples/node-endpoints/cluster.yaml'));
  assert.match(stdout, /from outside: 10\.244\.1\.5 port 8080 \(this node, terminating\)/);
  await assert.rejects(
    run('drain', join(root, 'examples/drain/cluster.json')),
    /exited with 1\n.*5 Services lose traffic/s,
  );
});

test('the first program of the page about the library runs there', async () => {
  const page = await readFile(join(root, 'docs/build-on/library.md'), 'utf8');
  const [, program] = /^cat >which\.js <<'END'\n(.*?)^END$/ms.exec(page) ?? [];
  assert.ok(program !== undefined);
  await writeFile(join(model, 'which.js'), program);
  const args = ['which.js', 'worker1', 'cat', join(root, 'examples/node-endpoints/cluster.yaml')];
  const { stdout } = await runProgram(process.execPath, args, { cwd: model, signal });
  assert.match(stdout, /^shop\/cart:http\/TCP 10\.244\.2\.5:8080$/m);
});

test('@switchyard/core alone brings no Kubernetes client and takes less than 6 MB', async () => {
  const files = await readdir(join(model, 'node_modules'), { recursive: true, withFileTypes: true });
  const sizes = files.filter((file) => file.isFile()).map((file) => statSync(join(file.parentPath, file.name)).size);
  const size = sizes.reduce((sum, one) => sum + one, 0);
  assert.ok(size > 1_000_000 && size < 6_000_000, `${size} bytes`);
  assert.deepEqual(
    files.filter(({ name }) => name === '@kubernetes').map((file) => file.parentPath),
    [],
  );
});

test('without the client library every entry point of core works; a credential plug-in is refused with the way out', async () => {
  const kubeconfig = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: 'https://192.0.2.1' } }],
    users: [{ name: 'u', user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'true' } } }],
  };
  await writeFile(join(model, 'kubeconfig'), JSON.stringify(kubeconfig));
  const { exports } = JSON.parse(await readFile(join(root, 'packages/core/package.json'), 'utf8')) as Exports;
  const program = `const names = ${JSON.stringify(Object.keys(exports))};
for (const name of names) if (Object.keys(await import('@switchyard/core' + name.slice(1))).length === 0) throw new Error(name);
const { systemClock } = await import('@switchyard/core');
const { kubeconfigConnection } = await import('@switchyard/core/kubernetes');
await kubeconfigConnection('kubeconfig', systemClock).catch(({ name, message }) => console.log(name + ': ' + message));`;
  await writeFile(join(model, 'without.js'), program);
  const { stdout } = await runProgram(process.execPath, ['without.js'], { cwd: model, signal });
  const why = 'its user has an exec plug-in or an auth provider; run: npm install @kubernetes/client-node';
  assert.equal(stdout, `ConfigError: kubeconfig kubeconfig: ${why}`);
});

test('every entry point can be imported', async () => {
  const names: string[] = [];
  for (const { folder: path } of publicPackages()) {
    const text = await readFile(join(root, path, 'package.json'), 'utf8');
    const { name, exports } = JSON.parse(text) as Exports;
    names.push(...Object.keys(exports).map((entry) => `${name}${entry.slice(1)}`));
  }
  const program = `for (const name of ${JSON.stringify(names)}) if (Object.keys(await import(name)).length === 0) throw new Error(name);`;
  await writeFile(join(folder, 'import-all.js'), program);
  await runProgram(process.execPath, ['import-all.js'], { cwd: folder, signal });
});

test('the scenarios come along and hold for the installed core', async () => {
  const program = `import { allScenarios, runOnTable } from '@switchyard/scenarios';
const steps = allScenarios().filter(({ runs }) => runs.kinds.includes('table')).flatMap((one) => runOnTable(one).steps);
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

test('npx runs the conformance suite from the installed packages, against any proxy', async () => {
  const proxy = `${join(root, 'apps/node-agent/bin/switchyard-agent')} --config={config}`;
  const which = ['--mode', 'nftables', '--case', 'scenario/etp-local/ipv4', '--lab-name', 'npx'];
  const args = ['switchyard-conformance', '--proxy-cmd', proxy, ...which];
  const { stdout } = await runProgram('npx', args, { cwd: folder, signal });
  assert.match(stdout, /^1 passed, 0 failed, 0 skipped, 0 errors/m);
});
