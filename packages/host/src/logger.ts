import { type Logger, asError, type LogFields, systemClock } from '@switchyard/core';
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { pino } from 'pino';

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

/** Destination of finished lines, newline included. */
interface LogSink {
  write(line: string): void;
}

/** Returns a logger that calls `print` for lines of the present level. */
function leveled(first: LogLevel, print: (level: LogLevel, message: string, fields: LogFields) => void): LeveledLogger {
  let level = first;
  const at =
    (line: LogLevel) =>
    (message: string, fields: LogFields = {}): void => {
      if (levels.indexOf(line) <= levels.indexOf(level)) print(line, message, fields);
    };
  return {
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    debug: at('debug'),
    trace: at('trace'),
    setLevel: (next) => {
      level = next;
    },
  };
}

/** Writes lines to a descriptor without ever waiting or failing. */
export interface SteadyOutput extends LogSink {
  /** Retries waiting lines once. Call it at process exit, when no timer fires any more. */
  flush(): void;
}

interface SteadyOutputOptions {
  readonly fd: number;
  /** Called when writing works again, with the number of dropped lines and the first error. */
  readonly onLost: (count: number, error: Error) => void;
  /** Maximum bytes that wait; further lines are dropped. Default 256 KiB. */
  readonly capacity?: number;
}

const defaultCapacity = 256 * 1024;
/** Milliseconds between retries while the reader is slow, the disk is full or the pipe has no reader. */
const retryInterval = 250;

/**
 * Creates an output that survives its reader. It writes lines at once, so that a killed process loses none. While writing
 * fails (EAGAIN, ENOSPC, EPIPE, EIO), lines up to `capacity` wait in memory and are written later, in order; further lines
 * are counted and dropped. A pipe or terminal is reopened non-blocking for this process only, because a stalled reader would
 * block the whole process. A socket cannot be reopened: a full socket buffer still blocks.
 */
export function steadyOutput(options: SteadyOutputOptions): SteadyOutput {
  const { onLost, capacity = defaultCapacity } = options;
  const fd = withoutBlocking(options.fd);
  let waiting: Buffer[] = [];
  let size = 0;
  let lost = 0;
  let trouble: Error | undefined;
  let timer: NodeJS.Timeout | undefined;

  const flush = (): void => {
    timer = undefined;
    try {
      for (let bytes = waiting[0]; bytes !== undefined; bytes = waiting[0]) {
        const written = writeSync(fd, bytes);
        size -= written;
        if (written < bytes.length) waiting[0] = bytes.subarray(written);
        else waiting.shift();
      }
    } catch (error) {
      trouble ??= asError(error);
      timer ??= setTimeout(flush, retryInterval).unref();
      return;
    }
    waiting = [];
    const [count, error] = [lost, trouble];
    lost = 0;
    trouble = undefined;
    if (count > 0 && error !== undefined) onLost(count, error);
  };

  return {
    write(line) {
      const bytes = Buffer.from(line);
      if (size > 0 && size + bytes.length > capacity) {
        lost++;
        return;
      }
      waiting.push(bytes);
      size += bytes.length;
      if (timer === undefined) flush();
    },
    flush,
  };
}

/** Returns a non-blocking descriptor of the same pipe or terminal; `fd` itself for everything else. */
function withoutBlocking(fd: number): number {
  try {
    const stat = fstatSync(fd);
    if (!stat.isFIFO() && !stat.isCharacterDevice()) return fd;
    const { O_APPEND, O_NOCTTY, O_NONBLOCK, O_WRONLY } = constants;
    return openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_APPEND);
  } catch {
    return fd; // no /proc, no permission, or no reader: keep the original
  }
}

/**
 * One JSON object per line: `level`, `time` (wall clock, milliseconds since the Unix epoch), `msg`, then the fields. Errors among
 * the fields are printed as name, code, message and cause.
 */
export function createJsonLogger(first: LogLevel, sink: LogSink): LeveledLogger {
  const inner = pino({ level: 'trace', base: null, formatters: { level: (label) => ({ level: label }) } }, sink);
  return leveled(first, (level, message, fields) => inner[level](withPlainErrors(fields), message));
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

/** First character of a line, as in klog. */
const letters: Readonly<Record<LogLevel, string>> = { error: 'E', warn: 'W', info: 'I', debug: 'I', trace: 'I' };

/**
 * Lines as klog writes them: `I1121 15:43:12.123456       1 switchyard] "applied" generation=3`. The time is local;
 * the program's name replaces klog's source file. Values are JSON where they are not plain words or numbers.
 * Line breaks in values are escaped, so each entry is one line.
 */
export function createTextLogger(first: LogLevel, { sink, now }: TextOptions): LeveledLogger {
  const pid = String(process.pid).padStart(7);
  return leveled(first, (level, message, fields) => {
    sink.write(`${letters[level]}${stamp(now())} ${pid} switchyard] ${JSON.stringify(message)}${textOf(fields)}\n`);
  });
}

interface TextOptions {
  readonly sink: LogSink;
  /** Wall clock: milliseconds since the Unix epoch. */
  readonly now: () => number;
}

function textOf(fields: LogFields): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}=${valueText(value)}`)
    .join('');
}

function valueText(value: unknown): string {
  if (value instanceof Error) return JSON.stringify(errorText(value));
  if (value instanceof Map) return JSON.stringify([...value]);
  if (typeof value === 'bigint') return String(value);
  return JSON.stringify(value) ?? String(value);
}

/** Returns the message and its causes, without a stack: the reader is an operator. */
function errorText(error: Error): string {
  const inner = error instanceof AggregateError ? error.errors : error.cause === undefined ? [] : [error.cause];
  const causes = inner
    .map((cause) => (cause instanceof Error ? errorText(cause) : String(cause)))
    .filter((cause) => !error.message.includes(reasonOf(cause)));
  return causes.length === 0 ? error.message : `${error.message}: ${causes.join('; ')}`;
}

/** Returns the description in a Node system error (`address already in use`); other texts unchanged. */
function reasonOf(text: string): string {
  return /^(?:[a-z]+ )?E[A-Z0-9]+: ([^,]+?)(?:, .*| \S+:\d+)?$/.exec(text)?.[1] ?? text;
}

/** `1121 15:43:12.123456`: month, day and time of a wall clock in milliseconds. */
function stamp(time: number): string {
  const date = new Date(time);
  const two = (value: number): string => String(value).padStart(2, '0');
  const micros = String(Math.min(999_999, Math.round((time % 1000) * 1000))).padStart(6, '0');
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
  return `${two(date.getMonth() + 1)}${two(date.getDate())} ${clock}.${micros}`;
}

/** `text`: lines as klog writes them. `json`: one object per line. */
export type LogFormat = 'text' | 'json';

/** Logs to stderr, each line at once. Lines that cannot be written are dropped; a later warning counts them. */
export function createLogger({
  format,
  level,
}: {
  readonly format: LogFormat;
  readonly level: LogLevel;
}): LeveledLogger {
  const sink = steadyOutput({ fd: 2, onLost: (lost, error) => logger.warn('log lines were lost', { lost, error }) });
  process.once('exit', () => sink.flush());
  const logger =
    format === 'json' ? createJsonLogger(level, sink) : createTextLogger(level, { sink, now: () => systemClock.now() });
  return logger;
}
