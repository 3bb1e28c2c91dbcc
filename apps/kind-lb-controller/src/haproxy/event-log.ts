import { closeSync, openSync, writeSync } from 'node:fs';
import { ConfigError, messageOf } from '@switchyard/core';
import type { TargetChange } from '../runtime/runtime.ts';

/** One line of the event log: HAProxy began or stopped using a node for a Service port. */
export interface ServerEvent {
  /** Wall clock: milliseconds since the Unix epoch, with a fraction. */
  readonly time: number;
  readonly kind: 'server-up' | 'server-down';
  /** Name of the Service's cluster. */
  readonly cluster: string;
  /** `namespace/name` of the Service. */
  readonly service: string;
  readonly node: string;
  /** HAProxy's words; empty if it gave none. */
  readonly reason: string;
  readonly port: number;
  readonly ipFamily: 'IPv4' | 'IPv6';
}

/** The event that a change of a target is. */
export function serverEvent({ id, time, isUp, target, reason, port, ipFamily }: TargetChange): ServerEvent {
  const kind = isUp ? 'server-up' : 'server-down';
  return { time, kind, cluster: id.cluster, service: id.service, node: target, reason, port, ipFamily };
}

/** A file that gets one JSON line per event, written at once. */
export interface EventLog extends Disposable {
  append(event: ServerEvent): void;
}

/** Opens the file for appending. Throws `ConfigError` if that is refused. */
export function openEventLog(path: string): EventLog {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'a', 0o644);
  } catch (cause) {
    const reason = messageOf(cause);
    throw new ConfigError('lb.event-log', `--event-log: cannot append to ${path}: ${reason}`, { cause });
  }
  return {
    append: (event) => void writeSync(descriptor, `${JSON.stringify(event)}\n`),
    [Symbol.dispose]: () => closeSync(descriptor),
  };
}
