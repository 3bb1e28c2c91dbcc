import { requireMethods } from './argument.ts';

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

/** Returns a logger that adds these fields to each line; the line's own fields of the same name win. Throws `UsageError` for what is no logger. */
export function withFields(log: Logger, fixed: LogFields): Logger {
  requireMethods('withFields: log', log, ['error', 'warn', 'info', 'debug', 'trace']);
  return {
    error: (message, fields) => log.error(message, { ...fixed, ...fields }),
    warn: (message, fields) => log.warn(message, { ...fixed, ...fields }),
    info: (message, fields) => log.info(message, { ...fixed, ...fields }),
    debug: (message, fields) => log.debug(message, { ...fixed, ...fields }),
    trace: (message, fields) => log.trace(message, { ...fixed, ...fields }),
  };
}
