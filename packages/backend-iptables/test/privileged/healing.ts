import { setTimeout } from 'node:timers/promises';
import {
  type ClusterEvent,
  ClusterState,
  createReconciler,
  type DataplaneBackend,
  type IpFamily,
  type LogFields,
  millis,
  noopMetrics,
  nodeName,
  seconds,
  systemClock,
} from '@switchyard/core';
import { MemoryLogger, MemorySource, tableOptions } from '@switchyard/core/testing';
import { type CommandRunner, iptablesName } from '@switchyard/host';
import { type Lab, type LabHost, runnerIn } from '@switchyard/lab';
import { iptablesBackend } from '../../src/index.ts';
import { signal, variant } from './support.ts';

/** How a heartbeat begins: one may come at any moment. */
const heartbeat = '*mangle\n:SWITCHYARD - [0:0]\n-A SWITCHYARD ';

/** Drift that comes sooner after the last one, or an apply sooner after another, waits; milliseconds. */
const calm = 1100;

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

  /** In a fight, this is what says that something is healed. */
  override debug(message: string, fields: LogFields = {}): void {
    if (message === 'drift healed') this.info(message, fields);
  }

  override warn(message: string, fields: LogFields = {}): void {
    this.info(message, fields);
  }
}

/** Keeps what restores are given, but for heartbeats. */
function recordingRunner(runner: CommandRunner, restores: string[]): CommandRunner {
  return {
    run: (file, args, options) => {
      const { stdin = '' } = options;
      const text = typeof stdin === 'string' ? stdin : [...stdin].join('');
      if (file.endsWith('-restore') && !text.startsWith(heartbeat)) restores.push(text);
      return runner.run(file, args, { ...options, stdin: text });
    },
  };
}

/** How a run starts. */
export interface HealingOptions {
  readonly lab: Lab;
  readonly host: LabHost;
  readonly cluster: readonly ClusterEvent[];
  readonly families?: readonly IpFamily[];
}

/** A reconciler with backends of some families on a real kernel: an agent without its process. */
export class Healing implements AsyncDisposable {
  /** What each restore was given, of ours and no others; no heartbeats. */
  readonly restores: string[];
  readonly #logger: TimedLogger;
  readonly #source: MemorySource;
  readonly #runner: CommandRunner;
  readonly #controller = new AbortController();
  readonly #backends: readonly DataplaneBackend[];
  readonly #ended: Promise<void>;
  #calmAt = 0;

  private constructor(parts: {
    readonly runner: CommandRunner;
    readonly restores: string[];
    readonly logger: TimedLogger;
    readonly backends: readonly DataplaneBackend[];
  }) {
    const { logger, backends } = parts;
    this.restores = parts.restores;
    this.#runner = parts.runner;
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
  static async start({ lab, host, cluster, families = ['IPv4'] }: HealingOptions): Promise<Healing> {
    const logger = new TimedLogger();
    const restores: string[] = [];
    const runner = recordingRunner(runnerIn(host, lab.folder), restores);
    const options = {
      runner,
      logger,
      variant,
      masqueradeBit: 14,
      localhostNodePorts: true,
      tcpBeLiberal: false,
      syncPeriod: millis(300),
      netns: `/run/netns/${host.namespace}`,
    };
    const backends = await Promise.all(families.map((family) => iptablesBackend.open(options, family, signal)));
    const healing = new Healing({ runner, restores, logger, backends });
    healing.push(cluster);
    for (const family of families) await healing.line('applied', 0, family);
    healing.#calmAt = performance.now() + calm;
    return healing;
  }

  /** The cluster changes. */
  push(batch: readonly ClusterEvent[]): void {
    this.#source.push(batch);
  }

  /**
   * Runs iptables as somebody else, one command a line such as `-t nat -F`. A line that begins with `nft` is a command of its own;
   * `empty nat` leaves nothing of tables, by one restore.
   */
  async others(script: string, family: IpFamily = 'IPv4'): Promise<string> {
    const iptables = iptablesName({ ipFamily: family, variant });
    let output = '';
    for (const line of script.split('\n')) {
      const [first = '', ...rest] = wordsOf(line);
      const [file, args] =
        first === 'nft'
          ? ['nft', rest]
          : first === 'empty'
            ? [`${iptables}-restore`, []]
            : [iptables, [first, ...rest]];
      const stdin = first === 'empty' ? rest.map((table) => `*${table}\nCOMMIT\n`).join('') : '';
      const result = await this.#runner.run(file, args, { stdin, timeout: seconds(30), signal });
      if (result.exitCode !== 0) throw new Error(`'${line}' was refused: ${result.stderr}`);
      output += result.stdout;
    }
    return output;
  }

  /** How many lines there are by now: where to look for the next one from. */
  get lines(): number {
    return this.#logger.timed.length;
  }

  /** Every line from a place on. */
  linesFrom(start: number): readonly TimedLine[] {
    return this.#logger.timed.slice(start);
  }

  /** Every report of drift from a place on. */
  driftFrom(start: number): readonly TimedLine[] {
    return this.linesFrom(start).filter(({ message }) => message.startsWith('drift:'));
  }

  /** The next such line of a family from a place on; waits for it, up to 40 s. */
  async line(message: string, from: number, family: IpFamily = 'IPv4'): Promise<TimedLine> {
    const isIt = (line: TimedLine): boolean => line.message === message && line.fields['ipFamily'] === family;
    const deadline = performance.now() + 40_000;
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

  /** Damages what is ours and waits until it is healed: milliseconds from the end of the damage to the end of the apply. */
  async heal(script: string, family: IpFamily = 'IPv4'): Promise<number> {
    await this.calm();
    const from = this.lines;
    await this.others(script, family);
    const damaged = performance.now();
    const { at } = await this.line('drift healed', from, family);
    this.#calmAt = at + calm;
    return Math.max(0, at - damaged);
  }

  /** What the backend of a family says is in the kernel. */
  async dump(family: IpFamily = 'IPv4'): Promise<string> {
    const backend = this.#backends.find(({ ipFamily }) => ipFamily === family);
    return (await backend?.dump(signal)) ?? '';
  }

  /** Takes everything of ours out of the kernel. The reconciler has ended by then. */
  async cleanup(): Promise<void> {
    await this.#stop();
    for (const backend of this.#backends) await backend.cleanup(signal);
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

/** Words of a command line; blanks within double quotes are kept. */
function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/"([^"]*)"|\S+/g)].map((match) => match[1] ?? match[0]);
}
