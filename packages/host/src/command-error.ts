import { constants } from 'node:os';
import { HostError } from '@switchyard/core';
import type { CommandResult } from './command-runner.ts';

/** How a command went wrong. `failed`: it ran to its end and exited non-zero. */
export type CommandFailure = 'notFound' | 'notStarted' | 'timedOut' | 'failed';

/** What is known about a command that went wrong. */
export interface CommandFailureDetails {
  readonly file: string;
  readonly args: readonly string[];
  /** Undefined when the program never ran to its end. */
  readonly exitCode?: number | undefined;
  /** The last lines the program wrote to stderr; empty when there are none. */
  readonly stderrTail?: string | undefined;
}

const tailLength = 2000;

/** A program on this machine did not do its work. The message names the program, the exit and the stderr tail. */
export class CommandError extends HostError {
  override readonly name = 'CommandError';
  readonly failure: CommandFailure;
  readonly exitCode: number | undefined;
  readonly stderrTail: string;

  constructor(failure: CommandFailure, message: string, options: ErrorOptions & CommandFailureDetails) {
    super(`command.${failure}`, message, options);
    this.failure = failure;
    this.exitCode = options.exitCode;
    this.stderrTail = options.stderrTail ?? '';
  }
}

/** The last part of a program's stderr, cut at a line start, for messages. */
export function stderrTail(stderr: string): string {
  const text = stderr.trimEnd();
  if (text.length <= tailLength) return text;
  const cut = text.slice(-tailLength);
  const lineStart = cut.indexOf('\n');
  return lineStart < 0 ? cut : cut.slice(lineStart + 1);
}

/** How a program ended, behind its name: by a signal (128 + its number, as in a shell), or by itself. */
export function endingOf({ exitCode }: Pick<CommandResult, 'exitCode'>): string {
  const signal = signalOf(exitCode);
  return signal === undefined ? `exited with ${exitCode}` : `was ended by ${signal} (exit status ${exitCode})`;
}

/** Whether a program crashed or was killed, rather than refused. */
export function isEndedBySignal({ exitCode }: Pick<CommandResult, 'exitCode'>): boolean {
  return signalOf(exitCode) !== undefined;
}

function signalOf(exitCode: number): string | undefined {
  return Object.entries(constants.signals).find(([, number]) => number === exitCode - 128)?.[0];
}

/** Turns a non-zero exit into an error, for callers to whom it is one. `attempt` says what was tried. */
export function commandFailed(attempt: string, details: CommandFailureDetails, result: CommandResult): CommandError {
  const tail = stderrTail(result.stderr);
  const said = tail === '' ? 'and said nothing on stderr' : `and said: ${tail}`;
  return new CommandError('failed', `${attempt}: ${details.file} ${endingOf(result)} ${said}`, {
    ...details,
    exitCode: result.exitCode,
    stderrTail: tail,
  });
}

/** Whether the program is not installed (or not in PATH). False for one that ran, however it ended. */
export function isProgramMissing(error: unknown): boolean {
  return error instanceof CommandError && error.failure === 'notFound';
}

/** Whether the program was killed because its time was over. */
export function isTimedOut(error: unknown): boolean {
  return error instanceof CommandError && error.failure === 'timedOut';
}

/**
 * Whether a command was refused for lack of privileges. Matching text is safe because the runner sets
 * LC_ALL=C and these are the C library's texts for EPERM and EACCES.
 */
export function isPermissionDenied(result: CommandResult): boolean {
  return result.exitCode !== 0 && /Operation not permitted|Permission denied/.test(result.stderr);
}
