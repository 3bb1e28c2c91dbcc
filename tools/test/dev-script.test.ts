import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { root } from '../workspace.ts';

// Runs the real ./dev in a small checkout of its own, on a PATH of a few real tools and stand-ins that only note
// how they were called: nothing is installed on this machine.

const realTools = ['sh', 'cat', 'cmp', 'cp', 'dirname', 'find', 'flock', 'mkdir', 'readlink', 'rm', 'uname'];

const bpfFolder = 'packages/backend-ebpf';
/** Sources of the BPF programs. */
const bpfFiles = ['bpf/socket.bpf.c', 'tools/build-bpf.ts', 'src/render/layouts.ts'];

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** How the stand-ins were called, one line each. */
  readonly calls: readonly string[];
}

/** A checkout with a `./dev`, a lockfile and a package list; `swy-missing` and `swy-absent` exist nowhere. */
class Sandbox implements Disposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'swy-dev-'));
  readonly checkout: string = join(this.folder, 'checkout');
  readonly bin: string = join(this.folder, 'bin');
  readonly #calls = join(this.folder, 'calls');

  constructor() {
    mkdirSync(join(this.checkout, 'tools'), { recursive: true });
    mkdirSync(this.bin);
    cpSync(join(root, 'dev'), join(this.checkout, 'dev'));
    writeFileSync(join(this.checkout, 'package-lock.json'), '{"v":1}');
    this.needs('shell\tsh\tis here');
    for (const tool of realTools) symlinkSync(realPath(tool), join(this.bin, tool));
    this.standIn('id', 'echo 0');
    this.standIn('apt-get', '');
    this.standIn('npm', 'rm -rf node_modules && mkdir node_modules');
    this.standIn('cmake', '[ "$1" = --build ] || { mkdir -p build && : >build/build.ninja; }');
    mkdirSync(join(this.checkout, 'packages/native'), { recursive: true });
    this.standIn('tsx', 'mkdir -p "${2%/tools/*}/build"');
    for (const file of bpfFiles) {
      mkdirSync(join(this.checkout, bpfFolder, file, '..'), { recursive: true });
      writeFileSync(join(this.checkout, bpfFolder, file), '');
    }
  }

  /** Lines of the package list. */
  needs(...lines: readonly string[]): void {
    writeFileSync(join(this.checkout, 'tools/debian-packages.txt'), `# a comment\n\n${lines.join('\n')}\n`);
  }

  /** A command that notes its call and then runs `body`. */
  standIn(name: string, body: string): void {
    const path = join(this.bin, name);
    const note = name === 'id' ? '' : `echo "${name} $*" >>'${this.#calls}'\n`;
    writeFileSync(path, `#!/bin/sh\n${note}${body}\n`);
    chmodSync(path, 0o755);
  }

  without(name: string): void {
    rmSync(join(this.bin, name));
  }

  /** Runs ./dev; `calls` holds only what this run called. */
  dev(args: readonly string[], from = this.checkout, script = join(this.checkout, 'dev')): Outcome {
    rmSync(this.#calls, { force: true });
    const { status, stdout, stderr } = spawnSync(script, args, {
      cwd: from,
      env: { PATH: this.bin },
      encoding: 'utf8',
      timeout: 20_000,
    });
    const calls = existsSync(this.#calls) ? readFileSync(this.#calls, 'utf8').trimEnd().split('\n') : [];
    return { code: status, stdout, stderr, calls };
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true });
  }
}

function realPath(tool: string): string {
  return spawnSync('sh', ['-c', `command -v ${tool}`], { encoding: 'utf8' }).stdout.trim();
}

const missing = ['shell\tsh\tis here', 'pkg-one\tswy-missing\tdoes one thing', 'pkg-two\tswy-absent\tdoes another'];
const aptLine = 'apt-get update && apt-get install -y --no-install-recommends pkg-one pkg-two';

test('only missing packages are installed, each named with its reason', () => {
  using box = new Sandbox();
  box.needs(...missing);
  const { code, stderr, calls } = box.dev(['setup']);
  assert.equal(code, 0, stderr);
  assert.deepEqual(calls.slice(0, 2), [
    'apt-get update -qq',
    'apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends pkg-one pkg-two',
  ]);
  assert.ok(
    stderr.startsWith('dev: pkg-one is missing: does one thing\ndev: pkg-two is missing: does another\n'),
    stderr,
  );
  assert.ok(!stderr.includes('shell'), stderr);
});

test('nothing missing: apt-get is not called', () => {
  using box = new Sandbox();
  assert.deepEqual(
    box.dev(['setup']).calls.filter((call) => call.startsWith('apt-get')),
    [],
  );
});

for (const [title, prepare] of [
  ['not root', (box: Sandbox) => box.standIn('id', 'echo 1000')],
  ['no apt-get', (box: Sandbox) => box.without('apt-get')],
  ['apt-get fails', (box: Sandbox) => box.standIn('apt-get', 'exit 100')],
] as const) {
  test(`packages are missing and ${title}: the last line is what to run, exit 1, npm is not called`, () => {
    using box = new Sandbox();
    box.needs(...missing);
    prepare(box);
    const { code, stderr, calls } = box.dev(['build']);
    assert.equal(code, 1);
    assert.ok(stderr.endsWith(`${aptLine}\n`), stderr);
    assert.ok(!calls.some((call) => call.startsWith('npm')), calls.join());
  });
}

test('npm ci runs when the lockfile is new or changed, and only then', () => {
  using box = new Sandbox();
  const npmCalls = (): number => box.dev(['setup']).calls.filter((call) => call.startsWith('npm ci')).length;
  assert.equal(npmCalls(), 1);
  assert.equal(npmCalls(), 0);
  writeFileSync(join(box.checkout, 'package-lock.json'), '{"v":2}');
  assert.equal(npmCalls(), 1);
  assert.equal(npmCalls(), 0);
});

test('a failed npm ci is said in one line, and repeated by the next command', () => {
  using box = new Sandbox();
  box.standIn('npm', 'mkdir -p node_modules; exit 7');
  for (const round of [1, 2]) {
    const { code, stderr, calls } = box.dev(['setup']);
    assert.equal(code, 1);
    assert.match(stderr, /^dev: npm ci failed .*\n$/m, `round ${round}`);
    assert.equal(calls.length, 1, `round ${round}`);
  }
});

const configureCall = ['cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release'];

test('the native addon is configured once and brought up to date by each set-up', () => {
  using box = new Sandbox();
  const cmakeCalls = (): readonly string[] => box.dev(['setup']).calls.filter((call) => call.startsWith('cmake'));
  assert.deepEqual(cmakeCalls(), [...configureCall, 'cmake --build build']);
  assert.deepEqual(cmakeCalls(), ['cmake --build build']);
});

test('an addon that does not compile: what the compiler said, then one line, and exit 1', () => {
  using box = new Sandbox();
  box.standIn('cmake', 'echo "no such compiler"; exit 2');
  const { code, stdout, stderr } = box.dev(['setup']);
  assert.deepEqual([code, stdout], [1, '']);
  assert.equal(
    stderr.split('\n').slice(-3).join('\n'),
    'no such compiler\ndev: the native addons (packages/native) could not be compiled (see above)\n',
  );
});

test('the BPF programs are compiled when one of their files is newer, and only then', () => {
  using box = new Sandbox();
  const build = join(box.checkout, bpfFolder, 'tools/build-bpf.ts');
  const calls = (): readonly string[] => box.dev(['setup']).calls.filter((call) => call.startsWith('tsx'));
  assert.deepEqual(calls(), [`tsx --conditions=@switchyard/source ${build}`]);
  assert.deepEqual(calls(), []);
  const later = new Date(Date.now() + 60_000);
  for (const file of bpfFiles) {
    utimesSync(join(box.checkout, bpfFolder, file), later, later);
    assert.equal(calls().length, 1, file);
    const past = new Date(0);
    utimesSync(join(box.checkout, bpfFolder, file), past, past);
  }
});

test('BPF programs that do not compile: what the compiler said, then one line, exit 1, and again the next time', () => {
  using box = new Sandbox();
  box.standIn('tsx', 'echo "no such header"; exit 1');
  for (const round of [1, 2]) {
    const { code, stderr } = box.dev(['setup']);
    assert.equal(code, 1, `round ${round}`);
    assert.ok(
      stderr.endsWith(
        'no such header\ndev: the BPF programs (packages/backend-ebpf/bpf) could not be compiled (see above)\n',
      ),
      stderr,
    );
  }
});

for (const command of ['demo', 'test']) {
  test(`${command} without root: the one line to run, and nothing is installed`, () => {
    using box = new Sandbox();
    box.needs(...missing);
    box.standIn('id', 'echo 1000');
    const { code, stderr, calls } = box.dev([command]);
    assert.deepEqual([code, calls], [1, []]);
    assert.equal(stderr, `dev: ${command} makes network namespaces and needs root; run: sudo ./dev ${command}\n`);
  });
}

test('clean removes what setup, build and test made, in the checkout and its packages, and nothing else', () => {
  using box = new Sandbox();
  const made = [
    'node_modules',
    '.nx/cache',
    '.nx/workspace-data',
    'packages/a/dist',
    'packages/native/build',
    'packages/a/node_modules',
    'apps/b/dist-bundle',
    'apps/b/.test-results',
  ];
  const kept = ['.nx/version-plans', 'packages/a/src', 'apps/b/src'];
  for (const folder of [...made, ...kept]) {
    mkdirSync(join(box.checkout, folder), { recursive: true });
  }
  const { code, stderr, calls } = box.dev(['clean'], box.folder);
  assert.deepEqual([code, stderr, calls], [0, '', []]);
  assert.deepEqual(
    made.filter((folder) => existsSync(join(box.checkout, folder))),
    [],
  );
  assert.ok(kept.every((folder) => existsSync(join(box.checkout, folder))));
  assert.ok(existsSync(join(box.checkout, 'package-lock.json')));
});

test('without npm, the line that installs it', () => {
  using box = new Sandbox();
  box.without('npm');
  const { code, stderr } = box.dev(['setup']);
  assert.equal(code, 1);
  assert.match(stderr, /npm is missing; run this as root: apt-get install -y npm\n$/);
});

test('help needs nothing; an unknown command is named on stderr with exit 1', () => {
  using box = new Sandbox();
  box.needs(...missing);
  for (const args of [[], ['help'], ['--help']]) {
    const { code, stdout, calls } = box.dev(args);
    assert.deepEqual([code, calls], [0, []]);
    assert.match(stdout, /^usage: \.\/dev COMMAND/);
  }
  const { code, stdout, stderr, calls } = box.dev(['nonsense']);
  assert.deepEqual([code, stdout, calls], [1, '', []]);
  assert.match(stderr, /^dev: unknown command 'nonsense'\n/);
});

test('from another folder, through a symlink, the checkout is found and the folder stays the current one', () => {
  using box = new Sandbox();
  const elsewhere = join(box.folder, 'else where');
  mkdirSync(elsewhere);
  const link = join(elsewhere, 'link');
  symlinkSync(join(box.checkout, 'dev'), link);
  box.standIn('node', 'pwd');
  const { code, stdout, stderr, calls } = box.dev(['bench', 'a b', '--x'], elsewhere, link);
  assert.equal(code, 0, stderr);
  assert.equal(stdout, `${elsewhere}\n`);
  assert.deepEqual(calls, [
    'npm ci --no-progress --loglevel=error',
    ...configureCall,
    'cmake --build build',
    `tsx --conditions=@switchyard/source ${box.checkout}/${bpfFolder}/tools/build-bpf.ts`,
    `node --conditions=@switchyard/source ${box.checkout}/tools/bench/run.ts a b --x`,
  ]);
  assert.ok(existsSync(join(box.checkout, 'node_modules')) && !existsSync(join(elsewhere, 'node_modules')));
});

test('pack sets the checkout up and hands its arguments to the packer, in the folder of the caller', () => {
  using box = new Sandbox();
  box.standIn('node', 'pwd');
  const elsewhere = join(box.folder, 'project');
  mkdirSync(elsewhere);
  const { code, stdout, stderr, calls } = box.dev(['pack', 'a b', '--package', 'core'], elsewhere);
  assert.deepEqual([code, stdout], [0, `${elsewhere}\n`], stderr);
  assert.equal(
    calls.at(-1),
    `node --conditions=@switchyard/source ${box.checkout}/tools/packages/run.ts a b --package core`,
  );
  assert.ok(calls.includes('npm ci --no-progress --loglevel=error'), calls.join());
  assert.match(box.dev(['help']).stdout, /^ {2}pack {4}/m);
});

test('docs needs npm packages only; it builds the site, or serves it', () => {
  using box = new Sandbox();
  box.needs(...missing);
  box.standIn('vitepress', '');
  const site = join(box.checkout, 'tools/site');
  for (const [args, call] of [
    [['--base', '/a b/'], `build ${site} --base /a b/`],
    [['serve', '--port', '1'], `dev ${site} --port 1`],
  ] as const) {
    const { code, stderr, calls } = box.dev(['docs', ...args]);
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      calls.filter((one) => !one.startsWith('npm ci')),
      [`vitepress ${call}`],
    );
  }
});

test('docs refuses another word before it installs anything', () => {
  using box = new Sandbox();
  const { code, stderr, calls } = box.dev(['docs', 'sevre']);
  assert.deepEqual([code, calls], [1, []]);
  assert.match(stderr, /^dev: docs knows only 'serve', not 'sevre'; run: /);
});

test('the Node that npm ci brings is used, also where npm makes no link for it', () => {
  using box = new Sandbox();
  const arch = process.arch === 'arm64' ? 'arm64' : 'x64';
  const folder = `node_modules/node-linux-${arch}/bin`;
  box.standIn(
    'npm',
    `mkdir -p ${folder} && printf '#!/bin/sh\\necho own node' >${folder}/node && chmod +x ${folder}/node`,
  );
  box.standIn('node', 'echo the machine');
  symlinkSync(realPath('chmod'), join(box.bin, 'chmod'));
  const { code, stdout, stderr } = box.dev(['bench']);
  assert.deepEqual([code, stdout], [0, 'own node\n'], stderr);
});

test('every line of the real package list has a package, a command and a reason', () => {
  const lines = readFileSync(join(root, 'tools/debian-packages.txt'), 'utf8').trimEnd().split('\n');
  const entries = lines.filter((line) => !line.startsWith('#'));
  assert.ok(entries.length > 0);
  for (const line of entries) assert.match(line, /^[a-z0-9][a-z0-9.+-]+\t(?:\/[\w.+/-]+|[a-z0-9][\w.+-]*)\t\S.+$/);
});
