import { asError } from '@switchyard/core';
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import type { LogSink } from './log-level.ts';

/** Lines to a descriptor, without ever waiting for it or failing because of it. */
export interface SteadyOutput extends LogSink {
  /** Tries once more to write what waits; for the end of the process, when no timer comes any more. */
  flush(): void;
}

/** Where lines go, and who learns of those that were lost. */
export interface SteadyOutputOptions {
  readonly fd: number;
  /** Called when lines can be written again: how many were dropped meanwhile, and the first error that stood in the way. */
  readonly onLost: (count: number, error: Error) => void;
  /** Bytes that wait at most; what comes on top is dropped. Default 256 KiB. */
  readonly capacity?: number;
}

const defaultCapacity = 256 * 1024;
/** In milliseconds: between attempts while the reader is slow, the disk is full or the pipe has no reader. */
const retryInterval = 250;

/**
 * An output that outlives its reader. Lines are written at once, so that nothing is lost when the process is killed.
 * While that does not go (EAGAIN, ENOSPC, EPIPE, EIO), some wait in memory and are written later, in order; more are
 * counted and dropped. A pipe or a terminal is opened once more without blocking, for this process only: a reader that
 * does not read would else stop the whole process. A socket cannot be; there a full buffer still blocks.
 */
export function steadyOutput(options: SteadyOutputOptions): SteadyOutput {
  const { onLost, capacity = defaultCapacity } = options;
  const fd = withoutBlocking(options.fd);
  let waiting: Buffer[] = [];
  let size = 0;
  let lost = 0;
  let trouble: Error | undefined;
  let timer: NodeJS.Timeout | undefined;

  const flush = (): void => {
    timer = undefined;
    try {
      for (let bytes = waiting[0]; bytes !== undefined; bytes = waiting[0]) {
        const written = writeSync(fd, bytes);
        size -= written;
        if (written < bytes.length) waiting[0] = bytes.subarray(written);
        else waiting.shift();
      }
    } catch (error) {
      trouble ??= asError(error);
      timer ??= setTimeout(flush, retryInterval).unref();
      return;
    }
    waiting = [];
    const [count, error] = [lost, trouble];
    lost = 0;
    trouble = undefined;
    if (count > 0 && error !== undefined) onLost(count, error);
  };

  return {
    write(line) {
      const bytes = Buffer.from(line);
      if (size > 0 && size + bytes.length > capacity) {
        lost++;
        return;
      }
      waiting.push(bytes);
      size += bytes.length;
      if (timer === undefined) flush();
    },
    flush,
  };
}

/** A descriptor for the same pipe or terminal that never blocks; `fd` itself for everything else. */
function withoutBlocking(fd: number): number {
  try {
    const stat = fstatSync(fd);
    if (!stat.isFIFO() && !stat.isCharacterDevice()) return fd;
    const { O_APPEND, O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants;
    return openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_APPEND);
  } catch {
    return fd; // no /proc, not ours to open, or no reader any more: as good as it was
  }
}
