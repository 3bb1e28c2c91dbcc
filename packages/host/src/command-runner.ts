import type { Millis } from '@switchyard/core';

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
