import { type Clock, type Logger, messageOf, millis } from '@switchyard/core';
import type { DockerCli } from './docker-cli.ts';
import { parseStampedLine, type StampedLine } from './log-line.ts';

/** Container to follow, and the receiver of its lines. */
export interface LogFollowerOptions {
  readonly cli: DockerCli;
  readonly clock: Clock;
  readonly log: Logger;
  /** Name or id. */
  readonly container: string;
  /** Lines written before are left out. Milliseconds since the Unix epoch. */
  readonly since: number;
  /** Gets every line once. Must not throw. */
  onLine(line: StampedLine): void;
}

const pause = millis(1000);

/**
 * Follows what a container writes to its standard output until disposed. When the stream ends, as with the container or the engine, it is
 * opened again where it ended.
 */
export class LogFollower implements AsyncDisposable {
  readonly #options: LogFollowerOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #last: StampedLine | undefined;

  constructor(options: LogFollowerOptions) {
    this.#options = options;
    const { signal } = this.#stop;
    this.#running = this.#run(signal).catch((error: unknown) => {
      if (signal.aborted) return;
      options.log.error('a container is no longer followed', {
        container: options.container,
        reason: messageOf(error),
      });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error('the log is no longer wanted'));
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { cli, clock, container, since, onLine } = this.#options;
    for (;;) {
      const before = this.#last;
      const from = before?.stamp ?? (since / 1000).toFixed(3);
      const take = (raw: string): void => {
        const line = parseStampedLine(raw);
        // Where the stream was opened again it begins with what was read last.
        if (line === undefined || (before !== undefined && line.time <= before.time)) return;
        this.#last = line;
        onLine(line);
      };
      await cli.follow(['logs', '--follow', '--timestamps', `--since=${from}`, container], take, signal);
      await clock.sleep(pause, signal);
    }
  }
}
