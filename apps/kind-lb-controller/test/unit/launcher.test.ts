import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';

// A checkout in miniature: the launcher must find everything from its own place, not from ours.
let checkout: string;
let app: string;

beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), 'swy-lb-'));
  app = join(checkout, 'apps/kind-lb-controller');
  mkdirSync(join(app, 'bin'), { recursive: true });
  copyFileSync(fileURLToPath(new URL('../../bin/switchyard-lb', import.meta.url)), join(app, 'bin/switchyard-lb'));
});
afterEach(() => rmSync(checkout, { recursive: true }));

const build = (): void => {
  mkdirSync(join(app, 'dist-bundle'));
  const main = 'console.log(JSON.stringify({ pid: process.pid, args: process.argv.slice(2), node: process.argv[0] }));';
  writeFileSync(join(app, 'dist-bundle/main.mjs'), main);
};
const installNode = (): void => {
  const folder = join(checkout, `node_modules/node-linux-${process.arch}/bin`);
  mkdirSync(folder, { recursive: true });
  symlinkSync(process.execPath, join(folder, 'node'));
};
const launch = async (
  file: string,
  ...args: readonly string[]
): Promise<{
  readonly pid: number | undefined;
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}> => {
  const child = spawn(file, args, { cwd: '/' });
  const [out, err, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve) => child.once('exit', resolve)),
  ]);
  return { pid: child.pid, code, out, err };
};

test('becomes the controller: same pid, arguments as given, from another folder and through a symlink', async () => {
  build();
  installNode();
  const link = join(checkout, 'link');
  symlinkSync(join(app, 'bin/switchyard-lb'), link);
  const { pid, code, out } = await launch(link, '--address', 'a b');
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ pid, args: ['--address', 'a b'] });
});

test.each([
  ['is not built', installNode, /^switchyard-lb: not built \(.*main\.mjs is missing\): run \.\/dev build\n$/],
  ['has no Node', build, /^switchyard-lb: the checkout's own Node is missing \(.*\): run \.\/dev build\n$/],
])('a checkout that %s is reported in one line', async (_, prepare, message) => {
  prepare();
  const { code, err } = await launch(join(app, 'bin/switchyard-lb'));
  expect(code).toBe(1);
  expect(err).toMatch(message);
});
