import { statSync } from 'node:fs';
import { type Clock, systemClock } from '@switchyard/core';

/** Identity of a folder, and when a name in it was last added, replaced or removed. */
export interface FolderTime {
  readonly inode: bigint;
  /** Since the Unix epoch, in nanoseconds; the kernel's clock for files stands still for up to 10 ms. */
  readonly changed: bigint;
}

/** Age in milliseconds from which no further change can have the same time. */
const settledAge = 1000;

/** Repeats a check of a folder's names only after its times changed, which bpffs notes too (tried on 6.18). */
export class FolderWatch {
  readonly #read: (path: string) => FolderTime | undefined;
  readonly #clock: Pick<Clock, 'now'>;
  /** Of the last check without a fault. */
  #right: FolderTime | undefined;

  constructor(read: typeof folderTime = folderTime, clock: Pick<Clock, 'now'> = systemClock) {
    this.#read = read;
    this.#clock = clock;
  }

  /** Faults that `check` finds; none without running it if it found none before and no name has changed since. */
  faults<Fault>(path: string, check: () => readonly Fault[]): readonly Fault[] {
    const before = this.#read(path);
    const right = this.#right;
    if (before !== undefined && before.inode === right?.inode && before.changed === right.changed) return [];
    const faults = check();
    const isSettled = before !== undefined && this.#clock.now() - Number(before.changed / 1_000_000n) > settledAge;
    this.#right = faults.length === 0 && isSettled ? before : undefined;
    return faults;
  }

  /** Makes the next call check. */
  forget(): void {
    this.#right = undefined;
  }
}

/** Undefined if there is no such folder. */
function folderTime(path: string): FolderTime | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : { inode: stat.ino, changed: stat.ctimeNs };
}
