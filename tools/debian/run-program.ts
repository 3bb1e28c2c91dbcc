import { execa } from 'execa';

/** Folder, environment and input of a program. */
export interface RunOptions {
  readonly cwd?: string;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly signal: AbortSignal;
}

/** Output of a program. */
export interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program and returns what it wrote. Rejects with the command, how it ended and the last lines it wrote;
 * names a missing program. Sets LC_ALL=C, so that texts are English on every machine.
 */
export async function runProgram(program: string, args: readonly string[], options: RunOptions): Promise<Output> {
  const { cwd, env, input, signal } = options;
  const result = await execa(program, args, {
    ...(cwd === undefined ? {} : { cwd }),
    ...(input === undefined ? { stdin: 'ignore' } : { input }),
    env: { LC_ALL: 'C', ...env },
    reject: false,
    cancelSignal: signal,
  });
  signal.throwIfAborted();
  if (!result.failed) return { stdout: result.stdout as string, stderr: result.stderr as string };
  if (result.code === 'ENOENT')
    throw new Error(`${program} is not on this machine; it is needed for: ${shown(program, args)}`);
  const how =
    result.exitCode === undefined ? `was ended by ${result.signal ?? 'a signal'}` : `exited with ${result.exitCode}`;
  const said = `${result.stderr as string}\n${result.stdout as string}`.trim().split('\n').slice(-15).join('\n');
  throw new Error(`${shown(program, args)} ${how}\n${said}`);
}

function shown(program: string, args: readonly string[]): string {
  const text = [program, ...args].join(' ');
  return text.length > 160 ? `${text.slice(0, 160)}...` : text;
}
