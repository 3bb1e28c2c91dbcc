import { shown } from './argument.ts';
import { ConfigError } from './errors.ts';
import { type Millis, millis } from './time.ts';

const unitMillis: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Parses a duration in the format of Go, such as `30s`, `1m30s`, `1.5h` or `0`. Throws `ConfigError` for negative ones. */
export function parseGoDuration(text: string): Millis {
  if (text === '0') return millis(0);
  const parts = typeof text === 'string' ? [...text.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g)] : [];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) {
    throw new ConfigError('duration.invalid', `not a duration such as 30s or 1m30s: ${shown(text)}`);
  }
  return millis(parts.reduce((sum, [, value, unit = '']) => sum + Number(value) * (unitMillis[unit] ?? 0), 0));
}
