import type { Logger } from '@switchyard/core';

/** Levels from least to most verbose. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug' | 'trace';

const levels: readonly LogLevel[] = ['error', 'warn', 'info', 'debug', 'trace'];

/** Returns the level of a `-v` number: Service changes from 4, kernel transactions from 6. */
export function logLevelOf(verbosity: number): LogLevel {
  return verbosity < 4 ? 'info' : verbosity < 6 ? 'debug' : 'trace';
}

/** A logger whose level can change at run time. */
export interface LeveledLogger extends Logger {
  /** Applies from the next line on. */
  setLevel(level: LogLevel): void;
}

/** Whether a logger at `level` prints lines of level `line`. */
export function isLevelEnabled(line: LogLevel, level: LogLevel): boolean {
  return levels.indexOf(line) <= levels.indexOf(level);
}

/** Destination of finished lines, newline included. */
export interface LogSink {
  write(line: string): void;
}

/** Inputs of a text logger. */
export interface LoggerSource {
  /** Read for each line, because it can change. */
  readonly level: () => LogLevel;
  readonly sink: LogSink;
  /** Wall clock: milliseconds since the Unix epoch. */
  readonly now: () => number;
}
