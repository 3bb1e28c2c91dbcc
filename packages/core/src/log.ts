/** Structured fields of one log line. Values must be JSON-serialisable; errors are allowed. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Constant message plus fields. error: a person must act; warn: degraded, will retry, logged on
 * transition; info: state changes of the agent; debug: per service; trace: transactions.
 */
export interface Logger {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  trace(message: string, fields?: LogFields): void;
}

const ignore = (): void => undefined;

/** Discards everything. */
export const noopLogger: Logger = { error: ignore, warn: ignore, info: ignore, debug: ignore, trace: ignore };
