import type {
  Cidr,
  Clock,
  ForwardingTable,
  IpAddress,
  IpFamily,
  Millis,
  NodeName,
  ServicePortKey,
} from '@switchyard/core';
import type { EbpfConfig } from '../config/run-config.ts';
import type { Failure, ReconcilerStatus, ServiceCounters } from '@switchyard/core/engine';

/** State for the debugging endpoints. Every call returns the current state. */
export interface DebugState {
  readonly nodeName: NodeName;
  /** Proxy mode; see `traitsOf`. */
  readonly mode: string;
  /** Sockets that the ebpf mode serves; see `EbpfConfig`. */
  readonly socketLb: EbpfConfig['socketLb'];
  /** Every family of this node, whether anything was applied to it or not. */
  readonly ipFamilies: readonly IpFamily[];
  readonly tables: () => ReadonlyMap<IpFamily, ForwardingTable>;
  readonly status: () => ReconcilerStatus;
  /** Calls `listener` after each apply, until the result is called. */
  readonly onApplied: (listener: () => void) => () => void;
  /** Addresses of this machine's interfaces now, without loopback. */
  readonly interfaceAddresses: () => readonly IpAddress[];
  /** Time that the proxy may take to apply a table: 0 unless another program is the proxy. */
  readonly proxyLag: Millis;
  /** Pod ranges of this node; empty while unknown. */
  readonly podCidrs: () => readonly Cidr[];
  /** Text of what is in the kernel, one of each family. They reject with `HostError`. */
  readonly dumps: readonly ((signal: AbortSignal) => Promise<string>)[];
  /** Counters of Services, by IP family; of the families that have some. */
  readonly serviceCounters: (signal: AbortSignal) => Promise<readonly ReadonlyMap<ServicePortKey, ServiceCounters>[]>;
  /** Wall clock. */
  readonly now: () => Millis;
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
}

/** Returns the state of a family for JSON, without undefined fields. */
export function familySummary({ tables, status }: DebugState, ipFamily: IpFamily): Readonly<Record<string, unknown>> {
  const family = status().families.get(ipFamily);
  return {
    ipFamily,
    ...optional('generation', tables().get(ipFamily)?.generation),
    ...optional('lastApplied', family?.lastApplied, timeText),
    ...optional('pendingMs', family?.pendingFor, Math.round),
    ...optional('failure', family?.failure, failureView),
  };
}

/** A failed apply, for JSON. */
export function failureView({ text, since }: Failure): Readonly<Record<string, unknown>> {
  return { text, since: timeText(since) };
}

/** `{ [name]: value }`, or nothing for undefined. */
export function optional<T>(
  name: string,
  value: T | undefined,
  render: (value: T) => unknown = (same) => same,
): Readonly<Record<string, unknown>> {
  return value === undefined ? {} : { [name]: render(value) };
}

/** RFC 3339. */
export function timeText(time: Millis): string {
  return new Date(time).toISOString();
}
