import { type Millis, millis } from '@switchyard/core';
import type { RequestRecord } from './run-record.ts';

/** Schedule of an open loop. */
export interface OpenLoop {
  /** Requests per second. */
  readonly rate: number;
  /** Wall clock: what was due before this had to be sent. */
  readonly until: Millis;
}

/**
 * Returns all requests that were due, in order: sent ones, and unsent ones in the gaps and at the end. A closed loop, which waits for
 * answers, sends less while requests are lost and would count too few losses; here every due request counts. Without any sent request
 * the start of the loop is unknown, and the result is empty.
 */
export function openLoop(sent: readonly RequestRecord[], { rate, until }: OpenLoop): readonly RequestRecord[] {
  const bySequence = new Map(sent.map((request) => [request.sequence, request]));
  const [any] = sent;
  if (any === undefined) return [];
  const period = 1000 / rate;
  const start = any.scheduledAt - any.sequence * period;
  // Requests may still fall due after `until` was read, and be sent; half a period is for clocks that differ.
  const due = Math.max(Math.ceil((until - start - period / 2) / period), ...[...bySequence.keys()].map((n) => n + 1));
  return Array.from(
    { length: due },
    (_, sequence) => bySequence.get(sequence) ?? unsent(sequence, start + sequence * period),
  );
}

function unsent(sequence: number, time: number): RequestRecord {
  const at = millis(time);
  return { sequence, scheduledAt: at, sentAt: at, doneAt: at, outcome: 'unsent', answeredBy: undefined };
}
