import {
  type ClusterEvent,
  ClusterState,
  createReconciler,
  type DataplaneBackend,
  type LogFields,
  millis,
  noopMetrics,
  nodeName,
  systemClock,
} from '@switchyard/core';
import { MemoryLogger, MemorySource, tableOptions } from '@switchyard/core/testing';
import type { LabHost } from '@switchyard/lab';
import { setTimeout } from 'node:timers/promises';
import { type NftablesHost, nftablesBackend } from '../../src/index.ts';
import { tableNames } from '../../src/names.ts';

/** Drift that comes sooner after the last one waits; milliseconds. */
const driftGap = 1000;

/** A line of the log, and when it was written (milliseconds of `performance.now`). */
export interface TimedLine {
  readonly message: string;
  readonly fields: LogFields;
  readonly at: number;
}

class TimedLogger extends MemoryLogger {
  readonly timed: TimedLine[] = [];

  override info(message: string, fields: LogFields = {}): void {
    this.timed.push({ message, fields, at: performance.now() });
  }

  override warn(message: string, fields: LogFields = {}): void {
    this.info(message, fields);
  }
}

/** A reconciler with backends of some families on a real kernel: an agent without its process. */
export class Healing implements AsyncDisposable {
  readonly #host: LabHost;
  readonly #logger: TimedLogger;
  readonly #source: MemorySource;
  readonly #controller = new AbortController();
  readonly #backends: readonly DataplaneBackend[];
  readonly #ended: Promise<void>;
  /** From when on drift is answered at once again. */
  #calmAt = 0;

  private constructor(host: LabHost, logger: TimedLogger, backends: readonly DataplaneBackend[]) {
    this.#host = host;
    this.#logger = logger;
    this.#source = new MemorySource();
    this.#backends = backends;
    const reconciler = createReconciler({
      source: this.#source,
      state: new ClusterState({ nodeName: nodeName('n1') }),
      nodeName: nodeName('n1'),
      families: backends.map((backend) => ({
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
      logger,
      metrics: noopMetrics,
    });
    this.#ended = reconciler.run(this.#controller.signal);
    this.#ended.catch(() => undefined); // told by the one who waits for a line
  }

  /** Starts with what is in the cluster, and waits until every family is in the kernel. */
  static async start(
    host: LabHost,
    cluster: readonly ClusterEvent[],
    families: readonly DataplaneBackend['ipFamily'][] = ['IPv4'],
  ): Promise<Healing> {
    const logger = new TimedLogger();
    const options: NftablesHost = {
      runner: {
        run: (file, args, { stdin, timeout }) =>
          host.run(file, args, { timeout, ...(typeof stdin === 'string' && { stdin }) }),
      },
      logger,
      transport: 'netlink',
      netns: `/run/netns/${host.namespace}`,
    };
    const { signal } = new AbortController();
    const backends = await Promise.all(families.map((family) => nftablesBackend.open(options, family, signal)));
    const healing = new Healing(host, logger, backends);
    healing.push(cluster);
    for (const family of families) await healing.line('applied', 0, family);
    return healing;
  }

  /** The cluster changes. */
  push(batch: readonly ClusterEvent[]): void {
    this.#source.push(batch);
  }

  /** Runs nft in the namespace; `TABLE` in its arguments is the name our table has just now. Rejects if nft refuses. */
  async nft(script: string): Promise<string> {
    const table = script.includes('TABLE') ? await this.table() : '';
    const result = await this.#host.run('nft', ['-f', '-'], { stdin: script.replaceAll('TABLE', table) });
    if (result.exitCode !== 0) throw new Error(`nft refused '${script}': ${result.stderr}`);
    return result.stdout;
  }

  /** The name of our only table. */
  async table(): Promise<string> {
    const there: string[] = [];
    for (const name of tableNames) {
      const { exitCode } = await this.#host.run('nft', ['list', 'set', 'inet', name, 'birthmark'], {});
      if (exitCode === 0) there.push(name);
    }
    if (there.length !== 1) throw new Error(`expected one table of ours, found ${there.length}`);
    return there[0] ?? '';
  }

  /** How many lines there are by now: where to look for the next one from. */
  get lines(): number {
    return this.#logger.timed.length;
  }

  /** Every line from a place on. */
  linesFrom(start: number): readonly TimedLine[] {
    return this.#logger.timed.slice(start);
  }

  /** The next such line of a family from a place on; waits for it, up to 10 s. */
  async line(message: string, from: number, family: DataplaneBackend['ipFamily'] = 'IPv4'): Promise<TimedLine> {
    const isIt = (line: TimedLine): boolean => line.message === message && line.fields['ipFamily'] === family;
    const deadline = performance.now() + 10_000;
    while (performance.now() < deadline) {
      const found = this.#logger.timed.slice(from).find(isIt);
      if (found !== undefined) return found;
      await Promise.race([setTimeout(2), this.#ended]);
    }
    const log = this.#logger.timed.slice(from).map((line) => `${line.message} ${JSON.stringify(line.fields)}`);
    throw new Error(`no line '${message}' of ${family}; there was:\n${log.join('\n')}`);
  }

  /** Damages what is ours and waits until it is healed: milliseconds from the end of the damage to the end of the apply. */
  async heal(script: string): Promise<number> {
    await setTimeout(Math.max(0, this.#calmAt - performance.now()));
    const from = this.lines;
    await this.nft(script);
    const damaged = performance.now();
    const { at } = await this.line('drift healed', from);
    this.#calmAt = at + driftGap;
    return Math.max(0, at - damaged);
  }

  /** What the backend of a family says is in the kernel. */
  async dump(family: DataplaneBackend['ipFamily'] = 'IPv4'): Promise<string> {
    const backend = this.#backends.find(({ ipFamily }) => ipFamily === family);
    return (await backend?.dump(new AbortController().signal)) ?? '';
  }

  /** Takes everything of ours out of the kernel. The reconciler has ended by then. */
  async cleanup(): Promise<void> {
    await this.#stop();
    for (const backend of this.#backends) await backend.cleanup(new AbortController().signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    for (const backend of this.#backends) await backend[Symbol.asyncDispose]();
  }

  async #stop(): Promise<void> {
    this.#controller.abort();
    await this.#ended;
  }
}
