import type { Millis } from '@switchyard/core';

/** `5 s`, `1.5 s`, `250 ms`. */
export function durationText(duration: Millis): string {
  return duration >= 1000 || duration === 0 ? `${Math.round(duration / 10) / 100} s` : `${Math.round(duration)} ms`;
}

/** `10 to 15 s`: both in the unit of the longer one. */
export function rangeText(shortest: Millis, longest: Millis): string {
  return longest >= 1000
    ? `${Math.round(shortest / 10) / 100} to ${durationText(longest)}`
    : `${Math.round(shortest)} to ${durationText(longest)}`;
}
