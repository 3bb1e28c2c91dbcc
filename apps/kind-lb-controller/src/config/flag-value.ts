import { ConfigError, messageOf } from '@switchyard/core';

/** The value of a flag, parsed. Throws `ConfigError`, which names the flag. */
export function flagValue<T>(flag: string, text: string, parse: (text: string) => T): T {
  try {
    return parse(text);
  } catch (cause) {
    throw new ConfigError('lb.flags', `${flag}: ${messageOf(cause)}`, { cause });
  }
}
