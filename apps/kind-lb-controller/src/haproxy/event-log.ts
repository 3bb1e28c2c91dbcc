import { closeSync, openSync, writeSync } from 'node:fs';
import { ConfigError, messageOf } from '@switchyard/core';
import { parseBackendName } from './haproxy-names.ts';
import type { ServerStateChange } from '../runtime/load-balancer-runtime.ts';

/** One line of the event log: HAProxy began or stopped using a node for a Service port. */
export interface ServerEvent {
  /** Wall clock: milliseconds since the Unix epoch, with a fraction. */
  readonly time: number;
  readonly kind: 'server-up' | 'server-down';
  /** `namespace/name` of the Service. */
  readonly service: string;
  readonly node: string;
  /** HAProxy's words; empty if it gave none. */
  readonly reason: string;
  readonly port: number;
  readonly ipFamily: 'IPv4' | 'IPv6';
}

/** The event that a state change is; undefined for a backend that is not ours. */
export function serverEvent({ time, isUp, backend, server, reason }: ServerStateChange): ServerEvent | undefined {
  const owner = parseBackendName(backend);
  if (owner === undefined) return undefined;
  const { service, port, ipFamily } = owner;
  return { time, kind: isUp ? 'server-up' : 'server-down', service, node: server, reason, port, ipFamily };
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
