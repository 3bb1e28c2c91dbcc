import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { HaproxyMaster } from './haproxy-master.ts';
import { commandInNetns } from '../kernel/own-namespace.ts';

/** How to start a HAProxy master. */
export interface MasterOptions {
  readonly program: string;
  readonly args: readonly string[];
  /** Name under /run/netns of the namespace to run in; undefined: our own. */
  readonly netns: string | undefined;
  /** The master's own socket, as given with `-S`. */
  readonly masterSocket: string;
  readonly onLogLine: (line: string) => void;
}

const stderrLines = 50;

/** A HAProxy master that is our child. */
export class MasterProcess implements HaproxyMaster {
  readonly #child: ChildProcess;
  readonly #program: string;
  readonly #stderr: string[] = [];
  readonly socket: string;
  /** Resolves when the process has ended, or could not be started. Never rejects. */
  readonly ended: Promise<void>;
  #failure: Error | undefined;
  #hasEnded = false;

  constructor(options: MasterOptions) {
    const { program, args, netns } = options;
    this.#program = program;
    this.socket = options.masterSocket;
    // nsenter becomes HAProxy, so the child's pid is the master's in both cases.
    const [file, words] = netns === undefined ? [program, args] : commandInNetns(netns, program, args);
    this.#child = spawn(file, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.ended = new Promise((resolve) => {
      const end = (): void => {
        this.#hasEnded = true;
        resolve();
      };
      this.#child.once('exit', end);
      this.#child.on('error', (error) => {
        this.#failure ??= error; // also of a failed kill, for which `hasEnded` decides
        if (this.#child.pid === undefined) end();
      });
    });
    this.#readLines(this.#child.stdout, options.onLogLine);
    this.#readLines(this.#child.stderr, (line) => {
      this.#stderr.push(line);
      if (this.#stderr.length > stderrLines) this.#stderr.shift();
    });
  }

  get pid(): number {
    return this.#child.pid ?? -1; // -1: it could not be started, and has ended
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The last lines it wrote to stderr, or why it could not be started. */
  get errorOutput(): string {
    return this.#child.pid === undefined
      ? `cannot run ${this.#program}: ${this.#failure?.message ?? 'no process'}; install haproxy`
      : this.#stderr.join('\n');
  }

  clearErrorOutput(): void {
    this.#stderr.length = 0;
  }

  requestReload(): Promise<void> {
    this.kill('SIGUSR2');
    return Promise.resolve();
  }

  /** Sends a signal. A process that has ended is left alone. */
  kill(name: NodeJS.Signals): void {
    if (!this.#hasEnded) this.#child.kill(name);
  }

  /** Leaves the process running on its own; it no longer keeps this process alive. */
  release(): void {
    this.#child.stdout?.destroy();
    this.#child.stderr?.destroy();
    this.#child.unref();
  }

  #readLines(stream: NodeJS.ReadableStream | null, onLine: (line: string) => void): void {
    if (stream === null) return;
    createInterface({ input: stream }).on('line', onLine);
  }
}
