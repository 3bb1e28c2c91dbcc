import { readFile } from 'node:fs/promises';
import { HostError, type Millis, millis, systemClock } from '@switchyard/core';
import type { LabNode, LabProcess } from '@switchyard/lab';
import { type TracedPacket, traceTable, traceTableText } from './trace-table.ts';

const beat = millis(10);

/** Limits of waiting. */
export interface MonitorOptions {
  /** Limit of the monitor's start, and of each command. */
  readonly patience: Millis;
  readonly signal: AbortSignal;
}

/** `nft monitor trace` in a node's namespace, and the table that marks packets for it. Disposing removes both. */
export class TraceMonitor implements AsyncDisposable {
  readonly #node: LabNode;
  readonly #process: LabProcess;

  private constructor(node: LabNode, process: LabProcess) {
    this.#node = node;
    this.#process = process;
  }

  /** Listens first and marks then: the monitor knows all rules but the table's own by their text. */
  static async start(node: LabNode, packet: TracedPacket, { patience, signal }: MonitorOptions): Promise<TraceMonitor> {
    const process = node.spawn('nft', ['monitor', 'trace'], { logName: 'trace' });
    const monitor = new TraceMonitor(node, process);
    try {
      await monitor.#listening(patience, signal);
      const made = await node.run('nft', ['-f', '-'], { stdin: traceTableText(packet), timeout: patience });
      if (made.exitCode !== 0) {
        throw new HostError(
          'trace.table',
          `nft refused the table ${traceTable} on ${node.name}: ${made.stderr.trim()}`,
        );
      }
      return monitor;
    } catch (error) {
      await monitor[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** All it has printed, when nothing more came for `quiet`. */
  async settled(quiet: Millis, signal: AbortSignal): Promise<string> {
    let text = '';
    for (let round = 0; round < 20; round++) {
      await systemClock.sleep(quiet, signal);
      const now = await readFile(this.#process.logFile, 'utf8');
      if (now === text && round > 0) break;
      text = now;
    }
    return text;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.stop(millis(0));
    await this.#node.run('nft', ['delete', 'table', 'inet', traceTable]); // it is not there where it could not be made
  }

  /** A netlink socket in the namespace has joined the group of traces. */
  async #listening(patience: Millis, signal: AbortSignal): Promise<void> {
    const until = systemClock.monotonic() + patience;
    for (;;) {
      const { stdout } = await this.#node.run('cat', ['/proc/net/netlink']);
      if (hasTraceListener(stdout)) return;
      if (this.#process.child.exitCode !== null || systemClock.monotonic() > until) {
        const said = (await readFile(this.#process.logFile, 'utf8')).trim();
        throw new HostError('trace.monitor', `nft monitor trace does not listen on ${this.#node.name}: ${said}`);
      }
      await systemClock.sleep(beat, signal);
    }
  }
}

/** Whether /proc/net/netlink shows a netfilter socket (protocol 12) in the group NFNLGRP_NFTRACE (9). */
export function hasTraceListener(table: string): boolean {
  return table.split('\n').some((line) => {
    const [, protocol, , groups = ''] = line.trim().split(/\s+/);
    return protocol === '12' && (Number.parseInt(groups, 16) & 0x100) !== 0;
  });
}
