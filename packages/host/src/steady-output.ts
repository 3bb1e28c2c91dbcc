import { asError } from '@switchyard/core';
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import type { LogSink } from './log-level.ts';

/** Writes lines to a descriptor without ever waiting or failing. */
export interface SteadyOutput extends LogSink {
  /** Retries waiting lines once. Call it at process exit, when no timer fires any more. */
  flush(): void;
}

/** Descriptor, loss callback and capacity. */
export interface SteadyOutputOptions {
  readonly fd: number;
  /** Called when writing works again, with the number of dropped lines and the first error. */
  readonly onLost: (count: number, error: Error) => void;
  /** Maximum bytes that wait; further lines are dropped. Default 256 KiB. */
  readonly capacity?: number;
}

const defaultCapacity = 256 * 1024;
/** Milliseconds between retries while the reader is slow, the disk is full or the pipe has no reader. */
const retryInterval = 250;

/**
 * Creates an output that survives its reader. It writes lines at once, so that a killed process loses none. While writing
 * fails (EAGAIN, ENOSPC, EPIPE, EIO), lines up to `capacity` wait in memory and are written later, in order; further lines
 * are counted and dropped. A pipe or terminal is reopened non-blocking for this process only, because a stalled reader would
 * block the whole process. A socket cannot be reopened: a full socket buffer still blocks.
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

/** Returns a non-blocking descriptor of the same pipe or terminal; `fd` itself for everything else. */
function withoutBlocking(fd: number): number {
  try {
    const stat = fstatSync(fd);
    if (!stat.isFIFO() && !stat.isCharacterDevice()) return fd;
    const { O_APPEND, O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants;
    return openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_APPEND);
  } catch {
    return fd; // no /proc, no permission, or no reader: keep the original
  }
}
