import type { LogFields, Logger } from '@switchyard/core';
import { isLevelEnabled, type LogLevel, type LoggerSource } from './log-level.ts';

/** First character of a line, as in klog. */
const letters: Readonly<Record<LogLevel, string>> = { error: 'E', warn: 'W', info: 'I', debug: 'I', trace: 'I' };

/**
 * Lines as klog writes them: `I1121 15:43:12.123456       1 switchyard] "applied" generation=3`. The time is local;
 * the program's name replaces klog's source file. Values are JSON where they are not plain words or numbers.
 * Line breaks in values are escaped, so each entry is one line. `level` is read for each line.
 */
export function createTextLogger({ level, sink, now }: LoggerSource): Logger {
  const pid = String(process.pid).padStart(7);
  const logAt =
    (method: LogLevel) =>
    (message: string, fields: LogFields = {}): void => {
      if (!isLevelEnabled(method, level())) return;
      sink.write(`${letters[method]}${stamp(now())} ${pid} switchyard] ${JSON.stringify(message)}${textOf(fields)}\n`);
    };
  return {
    error: logAt('error'),
    warn: logAt('warn'),
    info: logAt('info'),
    debug: logAt('debug'),
    trace: logAt('trace'),
  };
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
