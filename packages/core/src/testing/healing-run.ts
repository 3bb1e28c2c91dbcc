import { setTimeout } from 'node:timers/promises';
import type { ClusterEvent } from '../model/state/cluster-event.ts';
import type { IpFamily } from '../model/ip/address.ts';
import type { LogFields } from '../base/log.ts';
import { noopMetrics } from '../metrics/metrics.ts';
import type { DataplaneBackend } from '../engine/dataplane-backend.ts';
import { createReconciler } from '../engine/reconcile/reconciler.ts';
import { nodeName } from '../model/records/keys.ts';
import { ClusterState } from '../model/state/cluster-state.ts';
import { millis, systemClock } from '../base/time.ts';
import { tableOptions } from './builders.ts';
import { MemoryLogger } from './memory-logger.ts';
import { MemorySource } from './memory-source.ts';

/** A line of the log, and when it was written (milliseconds of `performance.now`). */
export interface TimedLine {
  readonly message: string;
  readonly fields: LogFields;
  readonly at: number;
}

/** Keeps what is logged as info or warning, with the time. */
export class TimedLogger extends MemoryLogger {
  readonly timed: TimedLine[] = [];

  override info(message: string, fields: LogFields = {}): void {
    this.timed.push({ message, fields, at: performance.now() });
  }

  override warn(message: string, fields: LogFields = {}): void {
    this.info(message, fields);
  }
}

/** Parts of a run. */
export interface HealingParts {
  /** The backends' own logger, too. */
  readonly logger: TimedLogger;
  readonly backends: readonly DataplaneBackend[];
  /** Time after one drift after which the next is healed at once again; milliseconds. */
  readonly calm: number;
  /** Longest wait for a line of the log; milliseconds. */
  readonly patience: number;
}

/** A reconciler with backends of some families on a real kernel: an agent without its process. Its Node is `n1`. */
export abstract class HealingRun implements AsyncDisposable {
  readonly #parts: HealingParts;
  readonly #source: MemorySource = new MemorySource();
  readonly #controller: AbortController = new AbortController();
  readonly #ended: Promise<void>;
  /** From when on drift is answered at once again. */
  #calmAt = 0;

  protected constructor(parts: HealingParts) {
    this.#parts = parts;
    const reconciler = createReconciler({
      source: this.#source,
      state: new ClusterState({ nodeName: nodeName('n1') }),
      nodeName: nodeName('n1'),
      families: parts.backends.map((backend) => ({
        backend,
        tableOptions: () => tableOptions({ ipFamily: backend.ipFamily }),
        afterApply: { syncHealth: () => Promise.resolve() },
      })),
      timing: {
        minSyncPeriod: undefined,
        retry: { first: millis(1000), max: millis(30_000) },
        resyncInterval: millis(3_600_000),
      },
      clock: systemClock,
      logger: parts.logger,
      metrics: noopMetrics,
    });
    this.#ended = reconciler.run(this.#controller.signal);
    this.#ended.catch(() => undefined); // told by the one who waits for a line
  }

  /** Runs the backend's own tool as another process that damages the rules. */
  protected abstract damage(script: string, family: IpFamily): Promise<unknown>;

  /** The first content of the cluster; waits until every family is in the kernel. */
  protected async fill(cluster: readonly ClusterEvent[]): Promise<void> {
    this.push(cluster);
    for (const { ipFamily } of this.#parts.backends) await this.line('applied', 0, ipFamily);
  }

  /** The cluster changes. */
  push(batch: readonly ClusterEvent[]): void {
    this.#source.push(batch);
  }

  /** How many lines there are by now: where to look for the next one from. */
  get lines(): number {
    return this.#parts.logger.timed.length;
  }

  /** Every line from a place on. */
  linesFrom(start: number): readonly TimedLine[] {
    return this.#parts.logger.timed.slice(start);
  }

  /** The next such line of a family from a place on; waits for it. */
  async line(message: string, from: number, family: IpFamily = 'IPv4'): Promise<TimedLine> {
    const isIt = (line: TimedLine): boolean => line.message === message && line.fields['ipFamily'] === family;
    const deadline = performance.now() + this.#parts.patience;
    while (performance.now() < deadline) {
      const found = this.linesFrom(from).find(isIt);
      if (found !== undefined) return found;
      await Promise.race([setTimeout(2), this.#ended]);
    }
    const log = this.linesFrom(from).map((line) => `${line.message} ${JSON.stringify(line.fields)}`);
    throw new Error(`no line '${message}' of ${family}; there was:\n${log.join('\n')}`);
  }

  /** Waits until the next drift is healed at once, and not after the rest of a second. */
  async calm(): Promise<void> {
    await setTimeout(Math.max(0, this.#calmAt - performance.now()));
  }

  /** Something was just healed or applied, at this time of `performance.now`: the next drift at once would have to wait. */
  protected stirred(at: number): void {
    this.#calmAt = at + this.#parts.calm;
  }

  /** Damages the rules and waits until they are healed; returns milliseconds from the end of the damage to the end of the apply. */
  async heal(script: string, family: IpFamily = 'IPv4'): Promise<number> {
    await this.calm();
    const from = this.lines;
    await this.damage(script, family);
    const damaged = performance.now();
    const { at } = await this.line('drift healed', from, family);
    this.stirred(at);
    return Math.max(0, at - damaged);
  }

  /** Returns the dump of the backend of a family. */
  async dump(family: IpFamily = 'IPv4'): Promise<string> {
    const backend = this.#parts.backends.find(({ ipFamily }) => ipFamily === family);
    return (await backend?.dump(new AbortController().signal)) ?? '';
  }

  /** Removes all rules of the backends from the kernel, after the reconciler has ended. */
  async cleanup(): Promise<void> {
    await this.#stop();
    for (const backend of this.#parts.backends) await backend.cleanup(new AbortController().signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    for (const backend of this.#parts.backends) await backend[Symbol.asyncDispose]();
  }

  async #stop(): Promise<void> {
    this.#controller.abort();
    await this.#ended;
  }
}
