import type { Logger } from '@switchyard/core';

/** Levels from least to most talkative. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug' | 'trace';

const levels: readonly LogLevel[] = ['error', 'warn', 'info', 'debug', 'trace'];

/** The level of a `-v` number: changes of services from 4 on, transactions from 6 on. */
export function logLevelOf(verbosity: number): LogLevel {
  return verbosity < 4 ? 'info' : verbosity < 6 ? 'debug' : 'trace';
}

/** A logger whose level can be changed while it is used. */
export interface LeveledLogger extends Logger {
  /** Counts from the next line on. */
  setLevel(level: LogLevel): void;
}

/** Whether lines of level `line` are printed at `level`. */
export function isLevelEnabled(line: LogLevel, level: LogLevel): boolean {
  return levels.indexOf(line) <= levels.indexOf(level);
}

/** Where finished lines go, newline included. */
export interface LogSink {
  write(line: string): void;
}

/** What a logger depends on. */
export interface LoggerSource {
  /** Asked for each line, so that it can change. */
  readonly level: () => LogLevel;
  readonly sink: LogSink;
  /** Wall clock: milliseconds since the Unix epoch. */
  readonly now: () => number;
}
