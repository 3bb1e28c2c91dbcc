import { parseGoDuration } from '@switchyard/core';

/** A duration as Go writes it, negative ones too, in milliseconds; undefined for anything else. */
export function tryParseDuration(text: string): number | undefined {
  const [, sign = '', rest = ''] = /^([+-]?)(.*)$/s.exec(text) ?? [];
  try {
    const value = parseGoDuration(rest);
    return sign === '-' && value > 0 ? -value : value;
  } catch {
    return undefined;
  }
}

/** Milliseconds as Go prints a duration: `24h0m0s`, `1m30s`, `1.5s`, `250ms`, `0s`. */
export function formatDuration(value: number): string {
  if (value === 0) return '0s';
  if (value < 0) return `-${formatDuration(-value)}`;
  if (value < 1) return `${trimmed(value * 1000)}µs`;
  if (value < 1000) return `${trimmed(value)}ms`;
  const hours = Math.floor(value / 3_600_000);
  const minutes = Math.floor((value % 3_600_000) / 60_000);
  const seconds = `${trimmed((value % 60_000) / 1000)}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}

/** At most nanoseconds. */
function trimmed(value: number): string {
  return String(Number(value.toFixed(6)));
}
