import { ConfigError, messageOf, type Millis, parseGoDuration } from '@switchyard/core';

/** A duration above zero as Go writes it, such as `5s`. Throws `ConfigError`, which names the flag. */
export function positiveDuration(text: string, flag: string): Millis {
  const refusal = (cause?: unknown): ConfigError =>
    new ConfigError('duration.invalid', `${flag}: not a positive duration such as 5s or 500ms: '${text}'`, { cause });
  let duration: Millis;
  try {
    duration = parseGoDuration(text);
  } catch (error) {
    throw refusal(error);
  }
  if (duration <= 0) throw refusal();
  return duration;
}

/** The value of a flag, parsed. Throws `ConfigError`, which names the flag. */
export function flagValue<T>(flag: string, text: string, parse: (text: string) => T): T {
  try {
    return parse(text);
  } catch (cause) {
    throw new ConfigError('lb.flags', `${flag}: ${messageOf(cause)}`, { cause });
  }
}
