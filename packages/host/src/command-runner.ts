import { constants } from 'node:os';
import type { Millis } from '@switchyard/core';
import { CommandError, stderrTail } from './command-error.ts';

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

async function run(file: string, args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  options.signal.throwIfAborted();
  const { execa } = await import('execa'); // lazy: an agent that runs no command does not load it
  const result = await execa(file, args, {
    input: options.stdin ?? '',
    timeout: options.timeout,
    cancelSignal: options.signal,
    env: { LC_ALL: 'C', ...options.env },
    reject: false,
    stripFinalNewline: false,
    forceKillAfterDelay: 1000,
    maxBuffer: 512 * 1024 * 1024,
  });
  if (result.isCanceled) throw options.signal.reason;
  const details = { file, args, stderrTail: stderrTail(result.stderr), cause: result.cause };
  if (result.timedOut) {
    throw new CommandError('timedOut', `${file} did not end within ${options.timeout} ms and was killed`, details);
  }
  if (result.exitCode !== undefined) return pick(result.exitCode, result);
  if (result.signal !== undefined) return pick(128 + constants.signals[result.signal], result);
  if (result.code === 'ENOENT') {
    throw new CommandError('notFound', `cannot run ${file}: no such program in PATH; install it`, details);
  }
  throw new CommandError('notStarted', `cannot run ${file}: ${result.originalMessage ?? result.code}`, details);
}

function pick(exitCode: number, output: { readonly stdout: string; readonly stderr: string }): CommandResult {
  return { exitCode, stdout: output.stdout, stderr: output.stderr };
}
