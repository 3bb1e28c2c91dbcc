import { type Logger, systemClock } from '@switchyard/core';
import { createJsonLogger } from './json-logger.ts';
import type { LogLevel } from './log-level.ts';
import { stderrSink } from './stderr-sink.ts';
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

/** Logs to stderr, each line at once. What cannot be written is lost, and said later how much that was. */
export function createLogger({ format, level: first }: LogOptions): AdjustableLogger {
  let level = first;
  const setLevel = (next: LogLevel): void => {
    level = next;
  };
  if (format === 'json') return createJsonLogger(first);
  const sink = stderrSink((lost, error) => logger.warn('log lines were lost', { lost, error }));
  const logger = { ...createTextLogger({ level: () => level, sink, now: () => systemClock.now() }), setLevel };
  return logger;
}
