import { closeSync, existsSync, openSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError, messageOf } from '@switchyard/core';

/** Checks before a long run that its result can be written. Throws `ConfigError` with this code. */
export function checkWritable(file: string, code: string): void {
  const isNew = !existsSync(file);
  try {
    closeSync(openSync(file, 'a'));
    if (isNew) rmSync(file);
  } catch (cause) {
    throw new ConfigError(code, `cannot write ${resolve(file)}: ${messageOf(cause)}`, { cause });
  }
}
