import { readFileSync } from 'node:fs';
import { HostError, type IpFamily, type Millis, millis } from '@switchyard/core';
import type { LoadBalancerMoment, SyncMoment } from '../run-record.ts';

interface AppliedLine {
  readonly time: number;
  readonly msg: string;
  readonly writes?: number;
  readonly durationMs?: number;
}

/** Every apply in an agent's JSON log. Lines that are not JSON (a crash) make the run invalid. */
export function readSyncs(text: string, node: string): readonly SyncMoment[] {
  return jsonLines<AppliedLine>(text, `log of the agent on ${node}`)
    .filter((line) => line.msg === 'applied')
    .map((line) => ({
      at: millis(line.time),
      node,
      writes: line.writes ?? 0,
      duration: millis(line.durationMs ?? 0),
    }));
}

interface ServerEventLine {
  readonly time: number;
  readonly kind: string;
  readonly service: string;
  readonly node: string;
  readonly reason?: string;
  readonly port?: number;
  readonly ipFamily?: string;
}

export interface FrontendName {
  /** `namespace/name`. */
  readonly service: string;
  readonly port: number;
  readonly ipFamily: IpFamily;
}

/** HAProxy's server states for one frontend. It holds every server UP when it starts, until the first check says no. */
export function readLoadBalancer(
  text: string,
  { service, port, ipFamily }: FrontendName,
  start: { readonly at: Millis; readonly nodes: readonly string[] },
): readonly LoadBalancerMoment[] {
  const initial = start.nodes.map((node) => ({ at: start.at, node, isUp: true, reason: 'HAProxy started' }));
  const events = jsonLines<ServerEventLine>(text, "the load balancer's event log")
    .filter((line) => line.service === service && line.port === port && line.ipFamily === ipFamily)
    .filter((line) => line.kind === 'server-up' || line.kind === 'server-down')
    .map((line) => ({
      at: millis(line.time),
      node: line.node,
      isUp: line.kind === 'server-up',
      reason: line.reason ?? '',
    }));
  return [...initial, ...events];
}

/** The text of a file that must exist by now. */
export function readLogFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new HostError('rollout.log', `the experiment cannot read ${path}, written by one of its programs`, {
      cause: error,
    });
  }
}

/** Values of a text with one JSON document a line. Throws `HostError` for another line. */
export function jsonLines<T>(text: string, what: string): readonly T[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      try {
        return JSON.parse(line) as T;
      } catch (error) {
        throw new HostError('rollout.log', `${what} has a line that is not JSON: ${line.slice(0, 200)}`, {
          cause: error,
        });
      }
    });
}
