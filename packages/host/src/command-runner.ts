import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import type { Millis } from '@switchyard/core';
import { CommandError, type CommandFailureDetails, stderrTail } from './command-error.ts';

/** How to run one command. */
export interface CommandOptions {
  readonly stdin?: string;
  readonly timeout: Millis;
  readonly signal: AbortSignal;
  readonly env?: Readonly<Record<string, string>>;
}

/** What a finished command left. */
export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs programs on this host. Short-lived programs only; output is buffered. */
export interface CommandRunner {
  /** A non-zero exit is a result, not an exception. Rejects only if the program cannot start, times out or is aborted. */
  run(file: string, args: readonly string[], options: CommandOptions): Promise<CommandResult>;
}

/**
 * A runner on this machine's processes. Programs run with LC_ALL=C, without a shell; a program that
 * ends by a signal has the exit code 128 + its number, as in a shell. On time-out and on abort the
 * program gets SIGTERM, then SIGKILL a second later; the promise settles when it has ended.
 */
export function createCommandRunner(): CommandRunner {
  return { run };
}

/** From SIGTERM to SIGKILL, in milliseconds. */
const killGrace = 1000;

/** Why a program was killed, if it was. */
type Verdict = 'timedOut' | 'aborted' | undefined;

async function run(file: string, args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  options.signal.throwIfAborted();
  const child = spawn(file, args, { env: { ...process.env, LC_ALL: 'C', ...options.env } });
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  child.stdin.on('error', () => undefined); // a program may end without reading all: its exit says enough
  child.stdin.end(options.stdin ?? '');
  const verdict = guard(child, options);
  const failure = await ended(child);
  const why = verdict();
  if (why === 'aborted') throw options.signal.reason;
  const details = { file, args, stderrTail: stderrTail(stderr()), cause: failure };
  if (why === 'timedOut') {
    throw new CommandError('timedOut', `${file} did not end within ${options.timeout} ms and was killed`, details);
  }
  if (failure !== undefined) throw startFailed(file, failure, details);
  return { exitCode: exitCodeOf(child), stdout: stdout(), stderr: stderr() };
}

function collect(stream: Readable): () => string {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8');
}

/** Kills the program when its time is over or the signal aborts; the answer tells whether it did. */
function guard(child: ChildProcess, { timeout, signal }: CommandOptions): () => Verdict {
  let verdict: Verdict;
  const kill = (why: Verdict): void => {
    verdict ??= why;
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), killGrace);
    child.once('exit', () => {
      clearTimeout(timer);
      // What it started may live on and hold the pipes; nobody wants the output of a killed program.
      child.stdout?.destroy();
      child.stderr?.destroy();
    });
  };
  const onAbort = (): void => kill('aborted');
  const timer = setTimeout(() => kill('timedOut'), timeout);
  signal.addEventListener('abort', onAbort, { once: true });
  const release = (): void => {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  };
  child.once('close', release).once('error', release);
  return () => verdict;
}

/** Resolves when the program has ended and its output is complete, or with why it never started. */
function ended(child: ChildProcess): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    child.once('error', (error) => {
      if (child.pid === undefined) resolve(error); // else a signal could not be sent; it goes on to its end
    });
    child.once('close', () => resolve(undefined));
  });
}

function exitCodeOf({ exitCode, signalCode }: ChildProcess): number {
  return exitCode ?? 128 + (signalCode === null ? 0 : constants.signals[signalCode]);
}

function startFailed(file: string, failure: NodeJS.ErrnoException, details: CommandFailureDetails): CommandError {
  const options = { ...details, cause: failure };
  return failure.code === 'ENOENT'
    ? new CommandError('notFound', `cannot run ${file}: no such program in PATH; install it`, options)
    : new CommandError('notStarted', `cannot run ${file}: ${failure.message}`, options);
}
