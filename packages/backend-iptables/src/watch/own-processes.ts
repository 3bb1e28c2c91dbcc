import type { CommandRunner } from '@switchyard/host';

/** So many looks at the notices after a process ended, all of its notices were seen: at most a second. */
const looksAfterEnd = 10;
/** For where nobody looks. */
const maxEnded = 64;

/**
 * The programs that write for us, by process id. iptables-nft's netlink socket has that number as its port id, also
 * where our processes are numbered otherwise than the host's; each notice of the kernel carries it.
 */
export class OwnProcesses {
  readonly #running = new Set<number>();
  /** How many looks ago each ended, the oldest first. */
  readonly #ended = new Map<number, number>();

  /** Whether it runs, or ended so shortly ago that notices of what it did may still come. */
  has(pid: number): boolean {
    return this.#running.has(pid) || this.#ended.has(pid);
  }

  /** The notices that were there by now are read. */
  noteLook(): void {
    for (const [pid, looks] of this.#ended) {
      if (looks >= looksAfterEnd) this.#ended.delete(pid);
      else this.#ended.set(pid, looks + 1);
    }
  }

  /** A runner whose processes are ours. */
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
