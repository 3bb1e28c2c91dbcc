import type { LogFields, Logger } from '../base/log.ts';

/** One call of a logger. */
export interface LogLine {
  readonly level: keyof Logger;
  readonly message: string;
  readonly fields: LogFields;
}

/** Keeps what is logged, for tests that assert it. */
export class MemoryLogger implements Logger {
  readonly lines: LogLine[] = [];

  /** Lines at info and above, as `level message`. */
  get transitions(): readonly string[] {
    return this.lines
      .filter(({ level }) => level !== 'debug' && level !== 'trace')
      .map(({ level, message }) => `${level} ${message}`);
  }

  error(message: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'error', message, fields });
  }

  warn(message: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'warn', message, fields });
  }

  info(message: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'info', message, fields });
  }

  debug(message: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'debug', message, fields });
  }

  trace(message: string, fields: LogFields = {}): void {
    this.lines.push({ level: 'trace', message, fields });
  }
}
