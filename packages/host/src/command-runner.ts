import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Millis } from '@switchyard/core';
import { CommandError, stderrTail } from './command-error.ts';
import type { Readable, Writable } from 'node:stream';

/** How to run one command. */
export interface CommandOptions {
  /**
   * Default: empty. The runner takes pieces as fast as the program reads them, and stops when the program ends. If the
   * iterable throws, the runner kills the program and rejects with that error.
   */
  readonly stdin?: string | Iterable<string>;
  /**
   * Receives output in arrival order, in pieces that can end within a line; `CommandResult.stdout` is then empty. If it
   * throws, the runner kills the program and rejects with that error.
   */
  readonly onStdout?: (piece: string) => void;
  /** Receives the process id when the program runs, before any input. */
  readonly onStart?: (pid: number) => void;
  readonly timeout: Millis;
  readonly signal: AbortSignal;
  readonly env?: Readonly<Record<string, string>>;
}

/** Result of a finished command. */
export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs programs on this host. Short-lived programs only; output is buffered unless `onStdout` is set. */
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

/** Why the runner killed a program. */
type KillReason = { readonly kind: 'timedOut' } | { readonly kind: 'stopped'; readonly error: unknown };

interface Guard {
  /** Undefined if the runner did not kill the program. */
  readonly killReason: () => KillReason | undefined;
  /** Kills the program because a callback or the input iterable threw. */
  readonly threw: (error: unknown) => void;
}

async function run(file: string, args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  const { timeout, signal, onStdout, onStart, stdin = '' } = options;
  signal.throwIfAborted();
  const child = spawn(file, args, { env: { ...process.env, LC_ALL: 'C', ...options.env } });
  const guard = guardOf(child, options);
  const stdout = onStdout === undefined ? collect(child.stdout) : passOn(child.stdout, onStdout, guard.threw);
  const stderr = collect(child.stderr);
  const ending = ended(child);
  try {
    if (child.pid !== undefined) onStart?.(child.pid);
  } catch (error) {
    guard.threw(error);
  }
  feed(child.stdin, stdin, guard.threw);
  const cause = await ending;
  const details = { file, args, stderrTail: stderrTail(stderr()), cause };
  const killed = guard.killReason();
  if (killed?.kind === 'stopped') throw killed.error;
  if (killed?.kind === 'timedOut') {
    throw new CommandError('timedOut', `${file} did not end within ${timeout} ms and was killed`, details);
  }
  if (cause?.code === 'ENOENT') {
    throw new CommandError('notFound', `cannot run ${file}: no such program in PATH; install it`, details);
  }
  if (cause !== undefined) throw new CommandError('notStarted', `cannot run ${file}: ${cause.message}`, details);
  const { exitCode, signalCode } = child;
  const status = exitCode ?? 128 + (signalCode === null ? 0 : constants.signals[signalCode]);
  return { exitCode: status, stdout: stdout(), stderr: stderr() };
}

/** Kills the program on time-out, on abort and when a callback or the input iterable throws. */
function guardOf(child: ChildProcess, { timeout, signal }: CommandOptions): Guard {
  let killReason: KillReason | undefined;
  const kill = (why: KillReason): void => {
    if (killReason !== undefined) return;
    killReason = why;
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), killGrace);
    child.once('exit', () => {
      clearTimeout(timer);
      // Its children may live on and hold the pipes open; the output of a killed program is discarded.
      child.stdout?.destroy();
      child.stderr?.destroy();
    });
  };
  const threw = (error: unknown): void => kill({ kind: 'stopped', error });
  const onAbort = (): void => threw(signal.reason);
  const timer = setTimeout(() => kill({ kind: 'timedOut' }), timeout);
  signal.addEventListener('abort', onAbort, { once: true });
  const release = (): void => {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  };
  child.once('close', release).once('error', release);
  return { killReason: () => killReason, threw };
}

/** Resolves when the program has ended and its output is complete, or with why it never started. */
function ended(child: ChildProcess): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    child.once('error', (error) => {
      if (child.pid === undefined) resolve(error); // otherwise a signal could not be sent; the program runs on
    });
    child.once('close', () => resolve(undefined));
  });
}

/** Buffers a stream. The returned function gives the text so far. */
function collect(stream: Readable): () => string {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8');
}

/** Passes a stream to `take` without buffering; the returned function gives ''. Calls `threw` at the first exception and stops passing. */
function passOn(stream: Readable, take: (piece: string) => void, threw: (error: unknown) => void): () => string {
  stream.setEncoding('utf8');
  let isTaking = true;
  stream.on('data', (piece: string) => {
    if (!isTaking) return; // keep reading: a program whose pipe is full does not end
    try {
      take(piece);
    } catch (error) {
      isTaking = false;
      threw(error);
    }
  });
  return () => '';
}

/**
 * Writes the input at the program's reading speed, then ends the stream. Ignores stream errors: a program may end without
 * reading everything, and its exit status reports failures. Calls `threw` with an exception of the iterable.
 */
function feed(stream: Writable, input: string | Iterable<string>, threw: (error: unknown) => void): void {
  stream.on('error', () => undefined);
  if (typeof input === 'string') stream.end(input);
  else void pump(stream, input).catch(threw);
}

async function pump(stream: Writable, pieces: Iterable<string>): Promise<void> {
  for (const piece of pieces) {
    if (stream.destroyed) return;
    if (!stream.write(piece)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const go = (): void => resolve();
      stream.on('drain', go).on('close', go); // room again, or the program has ended
      await promise;
      stream.off('drain', go).off('close', go);
    }
  }
  stream.end();
}
