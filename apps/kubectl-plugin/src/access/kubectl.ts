import { type ChildProcess, spawn } from 'node:child_process';
import { HostError } from '@switchyard/core';
import { linesOf } from './lines.ts';

/** Runs kubectl with the user's cluster flags. */
export interface Kubectl {
  /** Returns standard output. Rejects with `HostError` that has kubectl's own words. */
  run(args: readonly string[], signal: AbortSignal): Promise<string>;
  /** Starts a command that runs until it is killed; resolves with the first match in its output. */
  start(args: readonly string[], pattern: RegExp, signal: AbortSignal): Promise<StartedCommand>;
  /** Yields the lines of standard output as they arrive, such as those of `get --watch`. Throws as `run` rejects; `signal` ends it. */
  lines(args: readonly string[], signal: AbortSignal): AsyncGenerator<string, void>;
}

/** A running command, which disposing ends. */
export interface StartedCommand extends Disposable {
  readonly match: RegExpExecArray;
}

/** `flags`: such as `--context=c`, before each command. `file`: the program, such as `kubectl`. */
export function createKubectl(file: string, flags: readonly string[]): Kubectl {
  return {
    run: (args, signal) => run(file, [...flags, ...args], signal),
    start: (args, pattern, signal) => start(file, [...flags, ...args], { pattern, signal }),
    lines: (args, signal) => lines(file, [...flags, ...args], signal),
  };
}

async function run(file: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], signal });
  const [output, errors] = [collect(child.stdout), collect(child.stderr)];
  const code = await ended(child, file);
  if (code === 0) return output();
  throw failed(file, args, errors() || `exit code ${code}`);
}

interface StartOptions {
  readonly pattern: RegExp;
  readonly signal: AbortSignal;
}

async function start(
  file: string,
  args: readonly string[],
  { pattern, signal }: StartOptions,
): Promise<StartedCommand> {
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], signal });
  const errors = collect(child.stderr);
  const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
  let output = '';
  child.stdout.on('data', (piece: Buffer) => {
    output += piece.toString();
    const match = pattern.exec(output);
    if (match !== null) resolve(match);
  });
  ended(child, file).then((code) => reject(failed(file, args, errors() || `exit code ${code}`)), reject);
  const match = await promise;
  return { match, [Symbol.dispose]: () => void child.kill() };
}

async function* lines(file: string, args: readonly string[], signal: AbortSignal): AsyncGenerator<string, void> {
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], signal });
  const errors = collect(child.stderr);
  const end = ended(child, file);
  end.catch(() => undefined); // awaited below, after the output
  try {
    yield* linesOf(child.stdout.setEncoding('utf8'));
    const code = await end;
    if (code !== 0 && !signal.aborted) throw failed(file, args, errors() || `exit code ${code}`);
  } finally {
    child.kill();
  }
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.on('data', (piece: Buffer) => (text += piece.toString()));
  return () => text.trim();
}

function ended(child: ChildProcess, file: string): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.on('close', resolve);
    child.on('error', (cause: NodeJS.ErrnoException) => {
      if (cause.name === 'AbortError') return resolve(0);
      const next = cause.code === 'ENOENT' ? ': install kubectl, or name agents with --agent NODE=URL' : '';
      reject(new HostError('kubectl.start', `cannot run ${file}: ${cause.message}${next}`, { cause }));
    });
  });
}

function failed(file: string, args: readonly string[], said: string): HostError {
  return new HostError('kubectl.failed', `${file} ${args.join(' ')}: ${said}`);
}
