import type { CommandRunner } from '@switchyard/host';

/** Number of polls after the end of a process until all its notices were read: at most a second. */
const looksAfterEnd = 10;
/** Maximum number of ended processes, for when nothing polls. */
const maxEnded = 64;

/** Process ids of programs that write for the agent: the port ids of iptables-nft's netlink sockets. */
export class OwnProcesses {
  readonly #running = new Set<number>();
  /** Number of polls since each process ended, the oldest first. */
  readonly #ended = new Map<number, number>();

  /** Whether the process runs, or ended so recently that its notices may still arrive. */
  has(pid: number): boolean {
    return this.#running.has(pid) || this.#ended.has(pid);
  }

  /** Records one poll: all pending notices were read. */
  noteLook(): void {
    for (const [pid, looks] of this.#ended) {
      if (looks >= looksAfterEnd) this.#ended.delete(pid);
      else this.#ended.set(pid, looks + 1);
    }
  }

  /** Wraps a runner: its processes count as the agent's own. */
  runner(inner: CommandRunner): CommandRunner {
    return {
      run: async (file, args, options) => {
        let own: number | undefined;
        const onStart = (pid: number): void => {
          own = pid;
          this.#running.add(pid);
          options.onStart?.(pid);
        };
        try {
          return await inner.run(file, args, { ...options, onStart });
        } finally {
          if (own !== undefined) this.#noteEnd(own);
        }
      },
    };
  }

  #noteEnd(pid: number): void {
    this.#running.delete(pid);
    this.#ended.delete(pid); // it may stand there under an earlier life of the number
    this.#ended.set(pid, 0);
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > maxEnded && oldest !== undefined) this.#ended.delete(oldest);
  }
}
