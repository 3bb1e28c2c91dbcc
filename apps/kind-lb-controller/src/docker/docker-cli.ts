import { basename } from 'node:path';
import { type Millis, seconds } from '@switchyard/core';
import { execa } from 'execa';
import { classifyFailure, CliError, type CliFailure } from './cli-failure.ts';
import { ProcessSlots } from './process-slots.ts';

/** Supported command lines. They differ only in some shapes of JSON. */
export type EngineKind = 'docker' | 'podman' | 'nerdctl';

/** Which engine, and how to reach it. */
export interface DockerCliOptions {
  /** `docker`, `podman`, `nerdctl`, or a path to one of them. */
  readonly program: string;
  /** Added to this process's environment, for example `DOCKER_HOST`. */
  readonly env?: Readonly<Record<string, string>>;
  /** How many short commands run at once; 4 unless given. */
  readonly parallelism?: number;
}

/** How to run one command. */
export interface CliCommandOptions {
  /** 60 s unless given. */
  readonly timeout?: Millis;
  /** Whether it mostly waits, as `stop` does: then it takes none of the places of short commands. Unless said: no. */
  readonly isSlow?: boolean;
  /** Written to the program's standard input; empty unless given. */
  readonly stdin?: string;
}

/** How one command went. */
export type CliResult =
  | { readonly status: 'ok'; readonly stdout: string }
  | { readonly status: 'failed'; readonly failure: CliFailure; readonly stdout: string };

/** How many commands that mostly wait run at once; each takes some 25 MB. */
const slowCount = 16;
const defaultTimeout = seconds(60);
/** From SIGTERM to SIGKILL, in milliseconds. */
const killDelay = 1000;

/** Kept stderr of a followed command: chunks of at most 64 KB, then characters. */
const keptChunks = 2;
const keptLength = 4000;

/** The only place that runs the engine's command line. */
export class DockerCli {
  readonly kind: EngineKind;
  readonly program: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #slots: ProcessSlots;
  readonly #slowSlots: ProcessSlots = new ProcessSlots(slowCount);

  constructor(options: DockerCliOptions) {
    this.program = options.program;
    this.kind = engineKind(options.program);
    this.#env = { LC_ALL: 'C', ...options.env };
    this.#slots = new ProcessSlots(options.parallelism ?? 4);
  }

  /** Runs one command to its end. A failure is a result; rejects only with `signal.reason`. */
  async try(args: readonly string[], options: CliCommandOptions, signal: AbortSignal): Promise<CliResult> {
    const slots = options.isSlow === true ? this.#slowSlots : this.#slots;
    return slots.run(() => this.#run(args, options, signal), signal);
  }

  /** The standard output of one command. Rejects with a `CliError` that says what was attempted. */
  async run(
    attempt: string,
    args: readonly string[],
    options: CliCommandOptions,
    signal: AbortSignal,
  ): Promise<string> {
    const result = await this.try(args, options, signal);
    if (result.status === 'failed') throw new CliError(attempt, result.failure);
    return result.stdout;
  }

  /**
   * Runs a command that goes on, such as `events`, and hands over its lines. Resolves with its end, which is never what was wanted;
   * rejects with `signal.reason`, or with what `onLine` throws. Not counted among the commands at once.
   */
  async follow(args: readonly string[], onLine: (line: string) => void, signal: AbortSignal): Promise<CliFailure> {
    signal.throwIfAborted();
    const child = execa(this.program, args, {
      env: this.#env,
      stdin: 'ignore',
      buffer: false,
      reject: false,
      cancelSignal: signal,
      forceKillAfterDelay: killDelay,
    });
    // `logs` passes on what the container writes there, for as long as it lives: only the end is kept.
    const stderr: string[] = [];
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr.push(text);
      if (stderr.length > keptChunks) stderr.splice(0, 1);
    });
    try {
      for await (const line of child.iterable({ from: 'stdout' })) onLine(line);
    } catch (error) {
      child.kill();
      signal.throwIfAborted();
      if (!isOfExeca(error)) throw error;
    }
    const result = await child;
    signal.throwIfAborted();
    return this.#failure(args, { ...result, stderr: stderr.join('').trimEnd().slice(-keptLength) });
  }

  async #run(args: readonly string[], options: CliCommandOptions, signal: AbortSignal): Promise<CliResult> {
    const result = await execa(this.program, args, {
      env: this.#env,
      input: options.stdin ?? '',
      timeout: options.timeout ?? defaultTimeout,
      reject: false,
      cancelSignal: signal,
      forceKillAfterDelay: killDelay,
    });
    signal.throwIfAborted();
    if (!result.failed) return { status: 'ok', stdout: result.stdout };
    return { status: 'failed', failure: this.#failure(args, result), stdout: result.stdout ?? '' };
  }

  #failure(args: readonly string[], result: FinishedCommand): CliFailure {
    const stderr = result.stderr ?? '';
    const command = shortened([basename(this.program), ...args].join(' '));
    if (result.code === 'ENOENT' || result.code === 'EACCES') {
      return { kind: 'programMissing', command, exitCode: undefined, stderr: '' };
    }
    if (result.timedOut) return { kind: 'timedOut', command, exitCode: undefined, stderr };
    return { kind: classifyFailure(stderr), command, exitCode: result.exitCode ?? 128, stderr };
  }
}

/** The fields of execa's result that are read here. */
interface FinishedCommand {
  readonly exitCode?: number | undefined;
  readonly stderr?: string | undefined;
  readonly timedOut: boolean;
  readonly code?: string | undefined;
}

function isOfExeca(error: unknown): boolean {
  return error instanceof Error && 'shortMessage' in error;
}

function engineKind(program: string): EngineKind {
  const name = basename(program).replace(/\.exe$/, '');
  return name.startsWith('podman') ? 'podman' : name.startsWith('nerdctl') ? 'nerdctl' : 'docker';
}

function shortened(command: string): string {
  return command.length <= 300 ? command : `${command.slice(0, 300)}...`;
}
