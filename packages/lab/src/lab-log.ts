import { appendFileSync } from 'node:fs';
import { inspect } from 'node:util';
import type { LogFields, Logger } from '@switchyard/core';

/** Creates a logger that appends lines of time, level, message and fields to `file`, without debug and trace. */
export function createFileLogger(file: string): Logger {
  const write =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      const rest = Object.entries(fields).map(
        ([name, value]) => ` ${name}=${inspect(value, { breakLength: Infinity })}`,
      );
      appendFileSync(file, `${new Date().toISOString()} ${level} ${message}${rest.join('')}\n`);
    };
  const ignore = (): void => undefined;
  return { error: write('error'), warn: write('warn'), info: write('info'), debug: ignore, trace: ignore };
}
