import type { LogFields } from '@switchyard/core';
import { pino } from 'pino';
import type { LeveledLogger, LogLevel, LogSink } from './log-level.ts';
import { stderrSink } from './stderr-sink.ts';

/**
 * One JSON object per line on stderr (or `sink`): `level`, `time` (wall clock, milliseconds since the
 * Unix epoch), `msg`, then the fields. Lines are written at once, without a worker, so nothing is lost
 * when the process ends. A full disk or a slow or closed reader never blocks or ends the process; a later warning counts
 * the dropped lines. Errors among the fields are printed as name, code, message and cause.
 */
export function createJsonLogger(level: LogLevel, sink?: LogSink): LeveledLogger {
  const inner = pino(
    { level, base: null, formatters: { level: (label) => ({ level: label }) } },
    sink ?? stderrSink((lost, error) => logger.warn('log lines were lost', { lost, error })),
  );
  const logAt =
    (method: LogLevel) =>
    (message: string, fields: LogFields = {}): void => {
      if (inner.isLevelEnabled(method)) inner[method](withPlainErrors(fields), message);
    };
  const logger: LeveledLogger = {
    error: logAt('error'),
    warn: logAt('warn'),
    info: logAt('info'),
    debug: logAt('debug'),
    trace: logAt('trace'),
    setLevel: (next) => {
      inner.level = next;
    },
  };
  return logger;
}

function withPlainErrors(fields: LogFields): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, value instanceof Error ? plainError(value) : value]),
  );
}

/** Fields of an error without its stack: the message says what failed, and the reader is an operator. */
function plainError(error: Error): Record<string, unknown> {
  return {
    name: error.name,
    ...('code' in error ? { code: error.code } : {}),
    message: error.message,
    ...(error instanceof AggregateError ? { errors: error.errors.map(plainCause) } : {}),
    ...(error.cause === undefined ? {} : { cause: plainCause(error.cause) }),
  };
}

function plainCause(cause: unknown): unknown {
  return cause instanceof Error ? plainError(cause) : cause;
}
