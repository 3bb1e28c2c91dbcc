import { type Logger, systemClock } from '@switchyard/core';
import { writeSync } from 'node:fs';
import { createJsonLogger } from './json-logger.ts';
import type { LogLevel, LogSink } from './log-level.ts';
import { createTextLogger } from './text-logger.ts';

/** `text`: lines as klog writes them. `json`: one object per line. */
export type LogFormat = 'text' | 'json';

/** How to log. */
export interface LogOptions {
  readonly format: LogFormat;
  readonly level: LogLevel;
}

/** A logger whose level can be changed. */
export interface AdjustableLogger extends Logger {
  setLevel(level: LogLevel): void;
}

/** Logs to stderr, each line at once and complete. */
export function createLogger({ format, level: first }: LogOptions): AdjustableLogger {
  let level = first;
  const setLevel = (next: LogLevel): void => {
    level = next;
  };
  if (format === 'text') {
    return { ...createTextLogger({ level: () => level, sink: standardError, now: () => systemClock.now() }), setLevel };
  }
  return createJsonLogger(first);
}

const pause = new Int32Array(new SharedArrayBuffer(4));

/** Synchronous, so that nothing is lost when the process ends. A full pipe is waited for, but not for ever. */
const standardError: LogSink = {
  write: (line) => {
    let rest = Buffer.from(line);
    for (let tries = 0; rest.length > 0 && tries < 100; tries++) {
      try {
        rest = rest.subarray(writeSync(2, rest));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return; // nobody reads it; that must not end the agent
        Atomics.wait(pause, 0, 0, 10);
      }
    }
  },
};
