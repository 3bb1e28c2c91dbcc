import { ConfigError, type Millis, millis } from '@switchyard/core';

const unitMillis: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const part = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/y;

/**
 * A positive duration as Go writes it: `5s`, `500ms`, `1.5s`, `1m30s`. Throws `ConfigError`; `what` names the
 * flag in its message.
 */
export function parseGoDuration(text: string, what: string): Millis {
  let total = 0;
  part.lastIndex = 0;
  while (part.lastIndex < text.length) {
    const match = part.exec(text);
    if (match === null) throw invalid(text, what);
    total += Number(match[1]) * (unitMillis[match[2] ?? ''] ?? 0);
  }
  if (total <= 0) throw invalid(text, what);
  return millis(total);
}

function invalid(text: string, what: string): ConfigError {
  return new ConfigError('duration.invalid', `${what}: not a positive duration such as 5s or 500ms: '${text}'`);
}
