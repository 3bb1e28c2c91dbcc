import type { Millis } from '@switchyard/core';

/** HAProxy began or stopped using a node for a Service. */
export interface ServerEvent {
  /** Wall clock, when the line was received; HAProxy's own stamp has whole seconds only. */
  readonly time: Millis;
  readonly kind: 'server-up' | 'server-down';
  /** `namespace/name` of the Service. */
  readonly service: string;
  readonly port: number;
  readonly node: string;
}

const pattern = /Server ([^:\s]+):([^:\s]+):(\d+):(?:IPv4|IPv6)\/(\S+) is (UP|DOWN)/;

/** The event in one log line, or undefined when the line tells of something else. */
export function serverEventIn(line: string, time: Millis): ServerEvent | undefined {
  const match = pattern.exec(line);
  if (match === null) return undefined;
  const [, namespace = '', name = '', port = '', node = '', state] = match;
  const kind = state === 'UP' ? 'server-up' : 'server-down';
  return { time, kind, service: `${namespace}/${name}`, port: Number(port), node };
}
