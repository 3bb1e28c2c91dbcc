import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { type Clock, HostError, type Millis, millis, seconds } from '@switchyard/core';
import { askSocket } from './ask-socket.ts';

/** How to start a HAProxy master, which starts and replaces the workers that do the work. */
export interface MasterOptions {
  readonly program: string;
  readonly args: readonly string[];
  /** Name under /run/netns of the namespace to run in; undefined: our own. */
  readonly netns: string | undefined;
  /** The master's own socket, as given with `-S`. */
  readonly masterSocket: string;
  readonly clock: Clock;
  readonly onLogLine: (line: string) => void;
}

/** What the master says of itself. */
export interface MasterState {
  readonly pid: number;
  readonly reloads: number;
  /** Reloads that failed since the last good one. */
  readonly failed: number;
  readonly workers: readonly number[];
}

const answerLimit = seconds(2);
const pollInterval = millis(10);
const stderrLines = 50;

/** A running HAProxy master. */
export class MasterProcess {
  readonly #child: ChildProcess;
  readonly #options: MasterOptions;
  readonly #stderr: string[] = [];
  /** Resolves when the process has ended, or could not be started. Never rejects. */
  readonly ended: Promise<void>;
  #failure: Error | undefined;
  #hasEnded = false;

  constructor(options: MasterOptions) {
    this.#options = options;
    const { program, args, netns } = options;
    // nsenter becomes HAProxy, so the child's pid is the master's in both cases.
    const command =
      netns === undefined ? [program, ...args] : ['nsenter', `--net=/run/netns/${netns}`, '--', program, ...args];
    const [file = program, ...rest] = command;
    this.#child = spawn(file, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.ended = new Promise((resolve) => {
      const end = (): void => {
        this.#hasEnded = true;
        resolve();
      };
      this.#child.once('exit', end);
      this.#child.on('error', (error) => {
        this.#failure ??= error; // also of a failed kill, which `hasEnded` tells better
        if (this.#child.pid === undefined) end();
      });
    });
    this.#readLines(this.#child.stdout, options.onLogLine);
    this.#readLines(this.#child.stderr, (line) => {
      this.#stderr.push(line);
      if (this.#stderr.length > stderrLines) this.#stderr.shift();
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The last lines it wrote to stderr, or why it could not be started. */
  get complaint(): string {
    return this.#child.pid === undefined
      ? `cannot run ${this.#options.program}: ${this.#failure?.message ?? 'no process'}; install haproxy`
      : this.#stderr.join('\n');
  }

  /** Forgets what was written so far: what comes next is about the next attempt. */
  clearComplaint(): void {
    this.#stderr.length = 0;
  }

  /** Asks the master about itself. Rejects with `HostError` while it does not listen. */
  async state(signal: AbortSignal): Promise<MasterState> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(answerLimit)]);
    const state = parseMasterState(await askSocket(this.#options.masterSocket, 'show proc', limited));
    if (state?.pid !== this.#child.pid || state === undefined) {
      throw new HostError(
        'haproxy.master',
        `another process than our HAProxy answers on ${this.#options.masterSocket}`,
      );
    }
    return state;
  }

  /** Waits until it says what is wanted; undefined when it ended, or did not in time. */
  async waitFor(
    isWanted: (state: MasterState) => boolean,
    limit: Millis,
    signal: AbortSignal,
  ): Promise<MasterState | undefined> {
    const { clock } = this.#options;
    const deadline = clock.monotonic() + limit;
    while (!this.#hasEnded && clock.monotonic() < deadline) {
      const state = await this.#tryState(signal);
      if (state !== undefined && isWanted(state)) return state;
      await clock.sleep(pollInterval, signal);
    }
    return undefined;
  }

  /** Sends a signal. A process that has ended is left alone. */
  kill(name: NodeJS.Signals): void {
    if (!this.#hasEnded) this.#child.kill(name);
  }

  /** Lets it live on without us: nothing of it keeps this process running. */
  release(): void {
    this.#child.stdout?.destroy();
    this.#child.stderr?.destroy();
    this.#child.unref();
  }

  async #tryState(signal: AbortSignal): Promise<MasterState | undefined> {
    try {
      return await this.state(signal);
    } catch (error) {
      if (signal.aborted || !(error instanceof HostError || isTimeout(error))) throw error;
      return undefined; // while it starts or executes itself anew, nobody listens
    }
  }

  #readLines(stream: NodeJS.ReadableStream | null, onLine: (line: string) => void): void {
    if (stream === null) return;
    createInterface({ input: stream }).on('line', onLine);
  }
}

/** Reads the answer to `show proc`; undefined if it is none. */
export function parseMasterState(text: string): MasterState | undefined {
  const master = /^(\d+)\s+master\s+(\d+)\s+(?:\[failed: (\d+)\])?/m.exec(text);
  if (master === null) return undefined;
  const current = text.split('# old workers')[0] ?? '';
  return {
    pid: Number(master[1]),
    reloads: Number(master[2]),
    failed: Number(master[3] ?? 0),
    workers: [...current.matchAll(/^(\d+)\s+worker\s/gm)].map(([, pid]) => Number(pid)),
  };
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}
