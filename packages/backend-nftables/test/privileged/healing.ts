import type { ClusterEvent, IpFamily } from '@switchyard/core';
import { type HealingParts, HealingRun, TimedLogger } from '@switchyard/core/testing';
import type { LabHost } from '@switchyard/lab';
import { type NftablesHost, nftablesBackend } from '../../src/index.ts';
import { tableNames } from '../../src/render/names.ts';

/** Drift that comes sooner after the last one waits; milliseconds. */
const driftGap = 1000;

/** A reconciler with our backends on a real kernel; damage is done by nft. */
export class Healing extends HealingRun {
  readonly #host: LabHost;

  private constructor(host: LabHost, parts: HealingParts) {
    super(parts);
    this.#host = host;
  }

  /** Starts with what is in the cluster, and waits until every family is in the kernel. */
  static async start(
    host: LabHost,
    cluster: readonly ClusterEvent[],
    families: readonly IpFamily[] = ['IPv4'],
  ): Promise<Healing> {
    const logger = new TimedLogger();
    const options: NftablesHost = {
      logger,
      netns: `/run/netns/${host.namespace}`,
    };
    const { signal } = new AbortController();
    const backends = await Promise.all(families.map((family) => nftablesBackend.open(options, family, signal)));
    const healing = new Healing(host, { logger, backends, calm: driftGap, patience: 10_000 });
    await healing.fill(cluster);
    return healing;
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
    if (there.length !== 1) throw new Error(`expected one of our tables, found ${there.length}`);
    return there[0] ?? '';
  }

  protected override damage(script: string): Promise<string> {
    return this.nft(script);
  }
}
