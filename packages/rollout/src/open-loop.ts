import { type Millis, millis } from '@switchyard/core';
import type { RequestRecord } from './run-record.ts';

/** What an open loop was to send. */
export interface OpenLoop {
  /** Requests per second. */
  readonly rate: number;
  /** Wall clock: what was due before this had to be sent. */
  readonly until: Millis;
}

/**
 * All requests that were due, in order: those that were sent, and in the gaps and at the end those that were not. A load that waits for
 * answers (a closed loop) sends less just while requests are lost, and would count too few of them; what is due counts, sent or not.
 * Without any request nothing is known of when the loop began, and the result is empty.
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
