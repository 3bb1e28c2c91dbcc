import {
  type Clock,
  type ClusterEvent,
  type IpFamily,
  type LogFields,
  millis,
  seconds,
  systemClock,
} from '@switchyard/core';
import { type HealingParts, HealingRun, TimedLogger, type TimedLine } from '@switchyard/core/testing';
import { type CommandRunner } from '@switchyard/host';
import { iptablesName } from '@switchyard/netfilter/iptables';
import { type Lab, type LabHost, runnerIn } from '@switchyard/lab';
import { iptablesBackend } from '../../src/index.ts';
import { signal, variant } from './support.ts';

/** How a heartbeat begins: one may come at any moment. */
const heartbeat = '*mangle\n:SWITCHYARD - [0:0]\n-A SWITCHYARD ';

/** Drift that comes sooner after the last one, or an apply sooner after another, waits; milliseconds. */
const calm = 1100;

const syncPeriod = millis(300);

/** On a busy machine a look at legacy tables takes long, and the next one is fifty times that away; here it is soon. */
const impatientClock: Clock = {
  ...systemClock,
  sleep: (duration, stop) => systemClock.sleep(millis(Math.min(duration, syncPeriod)), stop),
};

class FightLogger extends TimedLogger {
  /** In a fight, this is what says that something is healed. */
  override debug(message: string, fields: LogFields = {}): void {
    if (message === 'drift healed') this.info(message, fields);
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

/** A reconciler with our backends on a real kernel; damage is done by iptables. */
export class Healing extends HealingRun {
  /** Input of each own restore, without heartbeats. */
  readonly restores: string[];
  readonly #runner: CommandRunner;

  private constructor(runner: CommandRunner, restores: string[], parts: HealingParts) {
    super(parts);
    this.restores = restores;
    this.#runner = runner;
  }

  /** Starts with what is in the cluster, and waits until every family is in the kernel. */
  static async start({ lab, host, cluster, families = ['IPv4'] }: HealingOptions): Promise<Healing> {
    const logger = new FightLogger();
    const restores: string[] = [];
    const runner = recordingRunner(runnerIn(host, lab.folder), restores);
    const options = {
      runner,
      logger,
      variant,
      masqueradeBit: 14,
      localhostNodePorts: true,
      tcpBeLiberal: false,
      syncPeriod,
      clock: impatientClock,
      netns: `/run/netns/${host.namespace}`,
    };
    const backends = await Promise.all(families.map((family) => iptablesBackend.open(options, family, signal)));
    const healing = new Healing(runner, restores, { logger, backends, calm, patience: 60_000 });
    await healing.fill(cluster);
    healing.stirred(performance.now());
    return healing;
  }

  /**
   * Runs iptables as another process, one command a line such as `-t nat -F`. A line that begins with `nft` is a command of its own;
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

  /** Every report of drift from a place on. */
  driftFrom(start: number): readonly TimedLine[] {
    return this.linesFrom(start).filter(({ message }) => message.startsWith('drift:'));
  }

  protected override damage(script: string, family: IpFamily): Promise<string> {
    return this.others(script, family);
  }
}

/** Words of a command line; blanks within double quotes are kept. */
function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/"([^"]*)"|\S+/g)].map((match) => match[1] ?? match[0]);
}
