import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { root } from '../workspace.ts';

/** Folder, environment and input of a program. */
export interface RunOptions {
  readonly cwd?: string;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly signal: AbortSignal;
}

export interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program and returns what it wrote. Rejects with the command, how it ended and the last lines it wrote;
 * names a missing program. Sets LC_ALL=C, so that texts are English on every machine.
 */
export async function runProgram(program: string, args: readonly string[], options: RunOptions): Promise<Output> {
  const { cwd, env, input, signal } = options;
  const result = await execa(program, args, {
    ...(cwd === undefined ? {} : { cwd }),
    ...(input === undefined ? { stdin: 'ignore' } : { input }),
    env: { LC_ALL: 'C', ...env },
    reject: false,
    cancelSignal: signal,
  });
  signal.throwIfAborted();
  if (!result.failed) return { stdout: result.stdout as string, stderr: result.stderr as string };
  if (result.code === 'ENOENT')
    throw new Error(`${program} is not on this machine; it is needed for: ${shown(program, args)}`);
  const how =
    result.exitCode === undefined ? `was ended by ${result.signal ?? 'a signal'}` : `exited with ${result.exitCode}`;
  const said = `${result.stderr as string}\n${result.stdout as string}`.trim().split('\n').slice(-15).join('\n');
  throw new Error(`${shown(program, args)} ${how}\n${said}`);
}

function shown(program: string, args: readonly string[]): string {
  const text = [program, ...args].join(' ');
  return text.length > 160 ? `${text.slice(0, 160)}...` : text;
}

/** Where Go builds, and with which packages. */
export interface GoOptions {
  readonly cwd?: string;
  readonly gopath: string;
  /** Go's own cache. */
  readonly cache: string;
  readonly signal: AbortSignal;
}

/** Runs the Go that is unpacked in `debian`, without modules, which Debian's source packages do not have, and without a C compiler. */
export async function runGo(debian: string, args: readonly string[], options: GoOptions): Promise<void> {
  const { gopath, cache, ...run } = options;
  const env = {
    GOROOT: join(debian, 'usr/lib/go'),
    GOPATH: gopath,
    GO111MODULE: 'off',
    GOCACHE: cache,
    GOFLAGS: '',
    GOTOOLCHAIN: 'local',
    CGO_ENABLED: '0',
  };
  await runProgram(join(debian, 'usr/bin/go'), args, { env, ...run });
}

/** Maximum wait for the lock, in seconds. */
const patience = 600;

/**
 * Runs `work` while no other process runs under the same file, which is made if needed. The lock belongs to a helper process
 * that ends with this one, so that a killed process leaves none behind.
 */
export async function withFileLock<T>(file: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const holder = execa('flock', ['--timeout', String(patience), file, 'sh', '-c', 'echo held; exec cat'], {
    stdin: 'pipe',
    reject: false,
    buffer: false,
    cancelSignal: signal,
  });
  try {
    const isHeld = await new Promise<boolean>((resolve) => {
      holder.stdout.once('data', () => resolve(true));
      void holder.then(() => resolve(false));
    });
    signal.throwIfAborted();
    if (!isHeld)
      throw new Error(`${file}: another process held this lock for ${patience} s, or flock (util-linux) is missing`);
    return await work();
  } finally {
    holder.stdin.end();
    await holder;
  }
}

/** Absolute path of one of the caches of this checkout. */
export function cacheFolder(cache: string): string {
  return join(root, 'node_modules/.cache', cache);
}

/**
 * The folder `name` of a cache. The first caller fills it, aside, and it appears when it is complete; callers at the same
 * time, by other processes too, wait.
 */
export async function cachedFolder(
  cache: string,
  name: string,
  fill: (folder: string) => Promise<void>,
  signal: AbortSignal,
): Promise<string> {
  const target = join(cacheFolder(cache), name);
  if (existsSync(target)) return target;
  await mkdir(cacheFolder(cache), { recursive: true });
  const work = async (): Promise<void> => {
    if (existsSync(target)) return;
    const partial = `${target}.partial`;
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial);
    try {
      await fill(partial);
      await rename(partial, target);
    } finally {
      await rm(partial, { recursive: true, force: true });
    }
  };
  await withFileLock(`${target}.lock`, work, signal);
  return target;
}
