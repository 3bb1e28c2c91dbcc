import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, messageOf, type Millis } from '@switchyard/core';
import { commandFailed, type CommandResult, type CommandRunner } from '@switchyard/host';

/** A program to be run for a cell. */
export interface CellCommand {
  readonly file: string;
  readonly args: readonly string[];
  /** Added to this process's. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly timeout: Millis;
  /** Receives each piece of standard output as it arrives; a piece may end within a line. */
  readonly onPiece?: (piece: string) => void;
}

/** Runs a cell's programs. */
export interface Shell {
  /** Nothing is run; commands are printed, and have succeeded without a word. */
  readonly isDry: boolean;
  /** A non-zero exit is a result. Rejects when the program cannot start, is too slow or is aborted. */
  run(command: CellCommand, signal: AbortSignal): Promise<CommandResult>;
  /** The last command that was begun, as one would type it; empty before the first. */
  readonly last: string;
  /** The last line of its standard output until now; empty when there is none. */
  readonly said: string;
}

/** Log of commands and their output. */
export interface ShellLog {
  readonly file: string;
  readonly clock: Clock;
}

/** Runs programs by `runner`, and appends each with its output and duration to the log, if there is one. */
export function programShell(runner: CommandRunner, log?: ShellLog): Shell {
  const shell = {
    isDry: false,
    last: '',
    said: '',
    run: (command: CellCommand, signal: AbortSignal): Promise<CommandResult> => {
      shell.last = commandText(command);
      shell.said = '';
      const result = runWith(runner, command, { signal, onLine: (line) => (shell.said = line) });
      return log === undefined ? result : logged(command, result, log);
    },
  };
  return shell;
}

async function logged(
  command: CellCommand,
  ending: Promise<CommandResult>,
  { file, clock }: ShellLog,
): Promise<CommandResult> {
  const started = clock.monotonic();
  const note = (how: string): Promise<void> => {
    const took = ((clock.monotonic() - started) / 1000).toFixed(1);
    return appendFile(file, `$ ${commandText(command)}\n# ${how}, ${took} s\n\n`);
  };
  try {
    const result = await ending;
    await note(`exit ${result.exitCode}${indented(result.stdout)}${indented(result.stderr)}\n# end`);
    return result;
  } catch (error) {
    await note(messageOf(error));
    throw error;
  }
}

/** Collects standard output itself, to report its lines as they arrive. */
async function runWith(
  runner: CommandRunner,
  { file, args, timeout, env, stdin, onPiece }: CellCommand,
  { signal, onLine }: { readonly signal: AbortSignal; readonly onLine: (line: string) => void },
): Promise<CommandResult> {
  const extras = { ...(env === undefined ? {} : { env }), ...(stdin === undefined ? {} : { stdin }) };
  const pieces: string[] = [];
  const onStdout = (piece: string): void => {
    pieces.push(piece);
    onPiece?.(piece);
    const line = piece.trimEnd().split('\n').at(-1)?.trim();
    if (line !== undefined && line !== '') onLine(line);
  };
  const result = await runner.run(file, args, { timeout, signal, onStdout, ...extras });
  return { ...result, stdout: pieces.join('') };
}

/** Prints commands instead of running them. */
export function dryShell(print: (line: string) => void): Shell {
  const shell = {
    isDry: true,
    last: '',
    said: '',
    run: async (command: CellCommand): Promise<CommandResult> => {
      shell.last = commandText(command);
      print(
        `  ${shell.last}${command.stdin === undefined ? '' : " <<'STDIN'\n" + command.stdin.trimEnd() + '\nSTDIN'}`,
      );
      return { exitCode: 0, stdout: '', stderr: '' };
    },
  };
  return shell;
}

/** Runs a program for which only the exit code 0 is success; `attempt` says what was tried. Returns its standard output. */
export async function mustRun(
  shell: Shell,
  command: CellCommand,
  attempt: string,
  signal: AbortSignal,
): Promise<string> {
  const result = await shell.run(command, signal);
  if (result.exitCode !== 0) throw commandFailed(attempt, command, result);
  return result.stdout;
}

/** A program of the checkout, run from its TypeScript sources. */
export function nodeProgram(
  checkout: string,
  file: string,
  args: readonly string[],
): { file: string; args: readonly string[] } {
  return { file: 'node', args: ['--conditions=@switchyard/source', join(checkout, file), ...args] };
}

/** A command as one would type it into a POSIX shell. */
export function commandText({ file, args, env = {} }: Pick<CellCommand, 'file' | 'args' | 'env'>): string {
  const settings = Object.entries(env).map(([name, value]) => `${name}=${quoted(value)}`);
  return [...settings, ...[file, ...args].map(quoted)].join(' ');
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

function indented(text: string): string {
  const trimmed = text.trimEnd();
  return trimmed === '' ? '' : `\n${trimmed.replaceAll(/^/gm, '    ')}`;
}
