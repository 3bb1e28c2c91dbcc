import { constants } from 'node:os';
import { HostError } from '@switchyard/core';
import type { CommandResult, CommandOptions, CommandRunner } from './command-runner.ts';

/** Kind of failure of a command. `failed`: it ran to its end and exited non-zero. */
export type CommandFailure = 'notFound' | 'notStarted' | 'timedOut' | 'failed';

/** Details of a failed command. */
export interface CommandFailureDetails {
  readonly file: string;
  readonly args: readonly string[];
  /** Undefined when the program never ran to its end. */
  readonly exitCode?: number | undefined;
  /** The last lines the program wrote to stderr; empty when there are none. */
  readonly stderrTail?: string | undefined;
}

const tailLength = 2000;

/** Failure of a program on this machine. The message names the program, the exit status and the end of stderr. */
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

/** Returns the end of a program's stderr (at most 2,000 characters, whole lines) for messages. */
export function stderrTail(stderr: string): string {
  const text = stderr.trimEnd();
  if (text.length <= tailLength) return text;
  const cut = text.slice(-tailLength);
  const lineStart = cut.indexOf('\n');
  return lineStart < 0 ? cut : cut.slice(lineStart + 1);
}

/** Words for a program's end, to follow its name: its exit status, or the signal that ended it (128 + its number). */
export function endingOf({ exitCode }: Pick<CommandResult, 'exitCode'>): string {
  const signal = signalOf(exitCode);
  return signal === undefined ? `exited with ${exitCode}` : `was ended by ${signal} (exit status ${exitCode})`;
}

/** Whether a signal ended the program: it crashed or was killed. */
export function isEndedBySignal({ exitCode }: Pick<CommandResult, 'exitCode'>): boolean {
  return signalOf(exitCode) !== undefined;
}

function signalOf(exitCode: number): string | undefined {
  return Object.entries(constants.signals).find(([, number]) => number === exitCode - 128)?.[0];
}

/** Returns the error for a non-zero exit. `attempt` says what the caller tried. */
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

/** Whether the program was killed by its time-out. */
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

/**
 * Runs a program in a temporary network namespace that ends with it, so that the rules it loads affect no other traffic.
 * Returns undefined if `unshare` or CAP_SYS_ADMIN is missing, or on time-out: the kernel creates no namespace while it
 * removes others, one per pod that ended on the node.
 */
export async function runInScratchNamespace(
  runner: CommandRunner,
  line: readonly string[],
  options: CommandOptions,
): Promise<CommandResult | undefined> {
  try {
    const result = await runner.run('unshare', ['--net', ...line], options);
    return result.exitCode !== 0 && result.stderr.includes('unshare') ? undefined : result;
  } catch (error) {
    options.signal.throwIfAborted();
    if (isProgramMissing(error) || isTimedOut(error)) return undefined;
    throw error;
  }
}
