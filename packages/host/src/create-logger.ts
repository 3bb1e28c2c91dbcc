import { systemClock } from '@switchyard/core';
import { createJsonLogger } from './json-logger.ts';
import type { LeveledLogger, LogLevel } from './log-level.ts';
import { stderrSink } from './stderr-sink.ts';
import { createTextLogger } from './text-logger.ts';

/** `text`: lines as klog writes them. `json`: one object per line. */
export type LogFormat = 'text' | 'json';

/** Log format and first level. */
export interface LogOptions {
  readonly format: LogFormat;
  readonly level: LogLevel;
}

/** Logs to stderr, each line at once. Lines that cannot be written are dropped; a later warning counts them. */
export function createLogger({ format, level: first }: LogOptions): LeveledLogger {
  let level = first;
  const setLevel = (next: LogLevel): void => {
    level = next;
  };
  if (format === 'json') return createJsonLogger(first);
  const sink = stderrSink((lost, error) => logger.warn('log lines were lost', { lost, error }));
  const logger = { ...createTextLogger({ level: () => level, sink, now: () => systemClock.now() }), setLevel };
  return logger;
}
