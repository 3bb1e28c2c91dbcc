import { UsageError } from '@switchyard/core';
import type { CommandOptions, CommandResult, CommandRunner } from '../command-runner.ts';

/** One command a test expects, and its canned answer. */
export interface ScriptedCommand {
  readonly file: string;
  readonly args: readonly string[];
  /** Compared only when given; a pattern must match. */
  readonly stdin?: string | RegExp;
  /** Default: exit code 0 and no output. An error is thrown, as a program that cannot start. */
  readonly answer?: Partial<CommandResult> | Error;
}

/**
 * A runner without processes: commands must come exactly in the order of the script. Anything else is
 * refused with a `UsageError` and remembered, so that `assertDone` fails even if the code swallows the
 * refusal. Process ids are 1, 2, 3; `onStdout` receives pieces of at most 50 characters.
 */
export class ScriptedRunner implements CommandRunner {
  readonly #script: ScriptedCommand[];
  readonly #faults: string[] = [];
  #started = 0;

  constructor(script: readonly ScriptedCommand[]) {
    this.#script = [...script];
  }

  async run(file: string, args: readonly string[], options: CommandOptions): Promise<CommandResult> {
    options.signal.throwIfAborted();
    this.#started += 1;
    const stdin = inputOf(options);
    const expected = this.#script.shift();
    const fault = faultOf(expected, { file, args, stdin });
    if (expected === undefined || fault !== undefined) {
      this.#faults.push(fault ?? '');
      throw new UsageError('scripted-runner.unexpected', fault ?? '');
    }
    if (expected.answer instanceof Error) throw expected.answer;
    options.onStart?.(this.#started);
    const result = { exitCode: 0, stdout: '', stderr: '', ...expected.answer };
    return options.onStdout === undefined ? result : { ...result, stdout: handedTo(options.onStdout, result.stdout) };
  }

  /** Throws if a command was refused or expected ones never came. Call it at the end of each test. */
  assertDone(): void {
    const leftovers = this.#script.map((command) => `never came: ${command.file} ${command.args.join(' ')}`);
    const faults = [...this.#faults, ...leftovers];
    if (faults.length > 0) throw new UsageError('scripted-runner.not-done', faults.join('\n'));
  }
}

/** Returns the whole input of a command as one text. */
export function inputOf({ stdin }: CommandOptions): string | undefined {
  return stdin === undefined || typeof stdin === 'string' ? stdin : [...stdin].join('');
}

/** Short pieces, so that lines come in parts, as they may from a pipe. */
function handedTo(take: (piece: string) => void, text: string): string {
  for (let at = 0; at < text.length; at += 50) take(text.slice(at, at + 50));
  return '';
}

interface Call {
  readonly file: string;
  readonly args: readonly string[];
  readonly stdin: string | undefined;
}

function faultOf(expected: ScriptedCommand | undefined, call: Call): string | undefined {
  const text = `${call.file} ${call.args.join(' ')}`;
  if (expected === undefined) return `unexpected command after the end of the script: ${text}`;
  const isSame = JSON.stringify([expected.file, expected.args]) === JSON.stringify([call.file, call.args]);
  if (!isSame) return `unexpected command: ${text}; the script wants: ${expected.file} ${expected.args.join(' ')}`;
  const { stdin } = expected;
  if (stdin === undefined) return undefined;
  const matches = typeof stdin === 'string' ? stdin === (call.stdin ?? '') : stdin.test(call.stdin ?? '');
  return matches ? undefined : `unexpected stdin of ${text}: ${JSON.stringify(call.stdin)}`;
}
