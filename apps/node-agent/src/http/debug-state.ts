import type { ForwardingTable, IpAddress, IpFamily, Millis, NodeName } from '@switchyard/core';
import type { EbpfConfig } from '../config/run-config.ts';
import type { Failure, ReconcilerStatus } from '@switchyard/core/engine';

/** What the debugging endpoints read. Every call gives the state of that moment. */
export interface DebugState {
  readonly nodeName: NodeName;
  /** How the kernel is programmed; see `traitsOf`. */
  readonly mode: string;
  /** Whose sockets the ebpf mode serves; see `EbpfConfig`. */
  readonly socketLb: EbpfConfig['socketLb'];
  /** Every family of this node, whether anything was applied to it or not. */
  readonly ipFamilies: readonly IpFamily[];
  /** What the kernel has, per family; see `Reconciler.tables`. */
  readonly tables: () => ReadonlyMap<IpFamily, ForwardingTable>;
  readonly status: () => ReconcilerStatus;
  /** What is on this machine's interfaces now, loopback excluded. */
  readonly interfaceAddresses: () => readonly IpAddress[];
  /** Text of what is in the kernel, one of each family. They reject with `HostError`. */
  readonly dumps: readonly ((signal: AbortSignal) => Promise<string>)[];
  /** Wall clock. */
  readonly now: () => Millis;
}

/** Where a family stands, for JSON: what does not apply is left out. */
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
