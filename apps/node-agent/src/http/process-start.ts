import type { Millis } from '@switchyard/core';

/** The header by which Prometheus' libraries report the start of the process (wall clock), in whole seconds. */
export function processStartHeader(startTime: Millis): Readonly<Record<string, string>> {
  return { 'Process-Start-Time-Unix': String(Math.floor(startTime / 1000)) };
}
