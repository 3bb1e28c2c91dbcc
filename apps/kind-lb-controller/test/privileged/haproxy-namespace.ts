import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TargetsRequest } from './fake-targets.ts';

/** Number of answers per node; `lost`: unanswered requests. */
export type Tally = Readonly<Record<string, number>>;

/** A namespace with only a loopback interface, played nodes 127.0.0.11 and 127.0.0.12 in it, and a folder for a HAProxy. */
export interface HaproxyNamespace extends AsyncDisposable {
  readonly netns: string;
  readonly folder: string;
  /** Runs a program in it and returns what it says. */
  run(...command: readonly string[]): string;
  setHealth(address: string, status: number, weight?: number): Promise<void>;
  /** Announcements to a node, each change once, with the status of the answer: `uses 200`. */
  announced(address: string): Promise<readonly string[]>;
  get(url: string, count: number): Promise<Tally>;
  load(
    url: string,
    options: { readonly count: number; readonly gap: number; readonly timeout?: number },
  ): Promise<Tally>;
  /** Pids of all HAProxy processes in it. */
  pids(): readonly number[];
}

/** The played nodes. */
export const nodes: readonly [string, string] = ['127.0.0.11', '127.0.0.12'];

/** Makes one. */
export async function createHaproxyNamespace(name: string): Promise<HaproxyNamespace> {
  const netns = `swy-${name}-${process.pid}`;
  const folder = mkdtempSync(join(tmpdir(), 'swy-lb-'));
  execFileSync('ip', ['netns', 'add', netns]);
  execFileSync('ip', ['-n', netns, 'link', 'set', 'lo', 'up']);
  const program = fileURLToPath(new URL('fake-targets.ts', import.meta.url));
  const command = [`--net=/run/netns/${netns}`, '--', process.execPath, '--disable-warning=ExperimentalWarning'];
  const child = spawn('nsenter', [...command, program, ...nodes], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  await once(child, 'message');
  const ask = asker(child);
  const pids = (): readonly number[] =>
    (execFileSync('ip', ['netns', 'pids', netns], { encoding: 'utf8' }).match(/\d+/g) ?? [])
      .map(Number)
      .filter((pid) => pid !== child.pid);
  return {
    netns,
    folder,
    run: (...words) => execFileSync('nsenter', [`--net=/run/netns/${netns}`, '--', ...words], { encoding: 'utf8' }),
    setHealth: async (address, status, weight) => {
      await ask({ kind: 'health', address, status, ...(weight === undefined ? {} : { weight }) });
    },
    announced: async (address) => (await ask({ kind: 'announced', address })) as readonly string[],
    get: async (url, count) => (await ask({ kind: 'get', url, count })) as Tally,
    load: async (url, options) => (await ask({ kind: 'load', url, ...options })) as Tally,
    pids,
    async [Symbol.asyncDispose]() {
      for (const pid of pids()) process.kill(pid, 'SIGKILL');
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      execFileSync('ip', ['netns', 'del', netns]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function asker(child: ChildProcess): (request: TargetsRequest) => Promise<unknown> {
  let last = 0;
  const waiting = new Map<number, (result: unknown) => void>();
  child.on('message', ({ id, result }: { readonly id: number; readonly result: unknown }) => {
    waiting.get(id)?.(result);
    waiting.delete(id);
  });
  return (request) =>
    new Promise((resolve) => {
      const id = ++last;
      waiting.set(id, resolve);
      child.send({ id, request });
    });
}
