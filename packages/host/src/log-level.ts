/** Levels from least to most talkative. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug' | 'trace';

const levels: readonly LogLevel[] = ['error', 'warn', 'info', 'debug', 'trace'];

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
