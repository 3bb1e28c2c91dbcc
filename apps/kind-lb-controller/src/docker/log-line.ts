import { parseServerState } from '../haproxy/haproxy-log.ts';
import { parseBackendName } from '../haproxy/haproxy-names.ts';
import type { TargetChange } from '../runtime/runtime.ts';
import type { LoadBalancerSpec, PortSpec } from '../spec/load-balancer-spec.ts';

/** A line of `logs --timestamps`. */
export interface StampedLine {
  /** As the engine writes it: RFC 3339 with nanoseconds. Orders the lines of one container. */
  readonly stamp: string;
  /** The same in milliseconds since the Unix epoch, with a fraction. */
  readonly time: number;
  readonly text: string;
}

/** Splits a line of `logs --timestamps`; undefined for one without a stamp. */
export function parseStampedLine(line: string): StampedLine | undefined {
  const match =
    /^(?<second>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?<fraction>\.\d+)?(?<zone>Z|[+-]\d\d:\d\d) (?<text>.*)$/.exec(line);
  const { second = '', fraction = '.0', zone = '', text = '' } = match?.groups ?? {};
  const whole = Date.parse(`${second}${zone}`);
  if (match === null || Number.isNaN(whole)) return undefined;
  return { stamp: line.slice(0, line.indexOf(' ')), time: whole + Number(`0${fraction}`) * 1000, text };
}

/** What a line of HAProxy's says about the targets of a load balancer. */
export interface HealthLine {
  /** One for each port concerned; none for a backend that only stands in for another. */
  readonly changes: readonly Omit<TargetChange, 'id' | 'time'>[];
}

/** Reads a line of HAProxy's log; undefined if it is not about the health of this load balancer's targets. */
export function parseHealthLine(text: string, spec: LoadBalancerSpec): HealthLine | undefined {
  const change = parseServerState(text);
  const owner = change === undefined ? undefined : parseBackendName(change.backend);
  if (change === undefined || owner === undefined) return undefined;
  const { server: target, isUp, reason } = change;
  const { ipFamily, isLast, use } = owner;
  const ports = isLast ? [] : use.kind === 'port' ? [use.port] : kernelPorts(spec).map(({ port }) => port);
  return { changes: [...new Set(ports)].map((port) => ({ port, ipFamily, target, isUp, reason })) };
}

/** Ports that the kernel forwards: HAProxy only checks their targets, all of them at once. */
export function kernelPorts({ path, ports }: LoadBalancerSpec): readonly PortSpec[] {
  return path === 'transparent' ? ports : ports.filter(({ protocol }) => protocol !== 'TCP');
}
