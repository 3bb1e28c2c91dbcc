import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';

const launcher = fileURLToPath(new URL('../bin/switchyard-agent', import.meta.url));

/** A checkout of its own with the launcher in it; `node` plays a Node that says how it was called. */
class FakeCheckout {
  readonly root = mkdtempSync(join(tmpdir(), 'switchyard launcher-'));
  readonly launcher: string;
  readonly #app = join(this.root, 'apps', 'node-agent');

  constructor() {
    onTestFinished(() => rmSync(this.root, { recursive: true }));
    this.launcher = join(this.#app, 'bin', 'switchyard-agent');
    mkdirSync(join(this.#app, 'bin'), { recursive: true });
    cpSync(launcher, this.launcher);
  }

  addBundle(): void {
    mkdirSync(join(this.#app, 'dist-bundle'));
    writeFileSync(join(this.#app, 'dist-bundle', 'main.mjs'), '');
  }

  /** Both platforms' places, so that the test does not depend on the machine's. */
  addOwnNode(): void {
    for (const arch of ['x64', 'arm64'])
      this.addProgram(`node_modules/node-linux-${arch}/bin`, 'node', 'echo "own: $*"');
  }

  addProgram(folder: string, name: string, script: string): string {
    const path = join(this.root, folder);
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(path, name), 0o755);
    return path;
  }

  run(file: string, path = '/usr/bin:/bin'): { readonly status: number | null; readonly text: string } {
    const result = spawnSync(file, ['--switchyard-dump'], { cwd: '/', env: { PATH: path }, encoding: 'utf8' });
    return { status: result.status, text: (result.stdout + result.stderr).trim() };
  }
}

describe('the launcher', () => {
  test('says what to run when nothing was built', () => {
    const checkout = new FakeCheckout();
    const { status, text } = checkout.run(checkout.launcher);
    expect(status).toBe(1);
    expect(text).toMatch(/^switchyard-agent: not built \(.*main\.mjs is missing\): run \.\/dev build$/);
  });

  test.each([20, 24, 63])('refuses %s file descriptors in one line, before Node fails for want of them', (files) => {
    const result = spawnSync('/bin/sh', ['-c', `ulimit -n ${files} && exec "$0" --version`, launcher], {
      encoding: 'utf8',
    });
    expect(result).toMatchObject({ status: 1, stdout: '' });
    expect(result.stderr).toBe(
      `switchyard-agent: the limit of open files is ${files}, at least 64 are needed: raise it (ulimit -n 1024, or LimitNOFILE=1024 of a systemd unit)\n`,
    );
  });

  test("becomes the checkout's own Node with the bundle and the flags, through a chain of symlinks", () => {
    const checkout = new FakeCheckout();
    checkout.addBundle();
    checkout.addOwnNode();
    symlinkSync(checkout.launcher, join(checkout.root, 'first link'));
    symlinkSync('first link', join(checkout.root, 'second'));
    const { status, text } = checkout.run(join(checkout.root, 'second'));
    expect(status).toBe(0);
    expect(text).toMatch(
      /^own: --max-semi-space-size=1 --no-parallel-scavenge .*\/dist-bundle\/main\.mjs --switchyard-dump$/,
    );
  });

  test.each([
    ['new enough', 'exit 0', 0, /^path: --max-semi-space-size=1/],
    ['too old', 'exit 1', 1, /^switchyard-agent: node v20\.1\.0 in PATH is too old: .* 24 or newer in PATH$/],
  ] as const)('without it takes the Node in PATH when it is %s', (...row) => {
    const [, check, expected, said] = row;
    const checkout = new FakeCheckout();
    checkout.addBundle();
    const script = `case $1 in -e) ${check} ;; --version) echo v20.1.0 ;; *) echo "path: $*" ;; esac`;
    const folder = checkout.addProgram('somewhere', 'node', script);
    const { status, text } = checkout.run(checkout.launcher, `${folder}:/usr/bin:/bin`);
    expect(status).toBe(expected);
    expect(text).toMatch(said);
  });
});
