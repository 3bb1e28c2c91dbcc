import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { millis } from '@switchyard/core';
import type { LabProcess } from '@switchyard/lab';
import { createService, inParallel, moveService } from './big-cluster.ts';
import type { Mode } from './modes.ts';
import { cpuOf, monotonic, peakRssOf, receivedBy, rssOf, scheduledOf } from './process-figures.ts';
import type { BenchLab } from './bench-lab.ts';

/** Figures of one size. All times in milliseconds, memory in MB. */
export interface SizeFigures {
  readonly services: number;
  readonly coldStarts: readonly number[];
  /** Of the same starts: until the agent knew the cluster. */
  readonly syncs: readonly number[];
  /** Of the same starts: CPU of the agent and its ended children. */
  readonly startCpus: readonly number[];
  /** Bytes that the node received during each of them. */
  readonly received: readonly number[];
  readonly adoptions: readonly number[];
  readonly rssAfterSync: number;
  /** The most it ever was, until after the changes. */
  readonly rssPeak: number;
  /** When nothing has happened for a while. */
  readonly rssIdle: number;
  /** Milliseconds of CPU per second in the last ten seconds of that while; NaN if there was none. */
  readonly idleCpu: number;
  readonly rssAfterChanges: number;
  readonly changes: readonly number[];
  readonly cpuPerChange: number;
  /** Of the lab's API server, per change: its share of the machine. */
  readonly apiServerCpuPerChange: number;
  readonly bursts: readonly number[];
}

type Pod = 'a' | 'b';

/** The Service that is moved to and fro; by its name the last one in every list. */
const moved = 'zz-moved';
const burstSize = 500;
const startTimeout = 120_000;
/** Time for all changes: a proxy that takes seconds for one makes fewer. */
const changesTime = 60_000;

/** How often each thing is done. */
export interface Rounds {
  readonly coldStarts: number;
  readonly adoptions: number;
  readonly changes: number;
  readonly bursts: number;
  /** Milliseconds; after 62,000 all is compiled, and what the start left has been given back. */
  readonly idleTime: number;
}

/** Measures one agent in a cluster that already holds `services` Services; the one that is moved comes on top. */
export class Measurement {
  readonly #benchLab: BenchLab;
  readonly #mode: Mode;
  readonly #clusterIp: string;
  #pod: Pod = 'a';

  private constructor(benchLab: BenchLab, mode: Mode, clusterIp: string) {
    this.#benchLab = benchLab;
    this.#mode = mode;
    this.#clusterIp = clusterIp;
  }

  /** Creates the Service that is moved. */
  static async begin(benchLab: BenchLab, mode: Mode, signal: AbortSignal): Promise<Measurement> {
    return new Measurement(benchLab, mode, await createService(benchLab.api, moved, [benchLab.addresses.a], signal));
  }

  async run(services: number, rounds: Rounds, signal: AbortSignal): Promise<SizeFigures> {
    const coldStarts: number[] = [];
    const syncs: number[] = [];
    const startCpus: number[] = [];
    const received: number[] = [];
    const coldStart = async (): Promise<LabProcess> => {
      const before = await receivedBy(this.#benchLab.node);
      const { agent, took, synced } = await this.#coldStart();
      coldStarts.push(took);
      syncs.push(synced);
      startCpus.push(cpuOf(agent.pid));
      received.push((await receivedBy(this.#benchLab.node)) - before);
      return agent;
    };
    for (let round = 1; round < rounds.coldStarts; round++) await (await coldStart()).stop(millis(0));
    const agent = await coldStart();
    await sleep(2000);
    const rssAfterSync = rssOf(agent.pid);
    const lastPart = Math.min(rounds.idleTime, 10_000);
    await sleep(rounds.idleTime - lastPart);
    const busy = scheduledOf(agent.pid);
    await sleep(lastPart);
    const idleCpu = ((scheduledOf(agent.pid) - busy) / lastPart) * 1000;
    const rssIdle = rssOf(agent.pid);
    const { changes, cpuPerChange, apiServerCpuPerChange } = await this.#changes(agent, rounds.changes, signal);
    const rssAfterChanges = rssOf(agent.pid);
    const rssPeak = peakRssOf(agent.pid);
    const bursts = rounds.bursts === 0 ? [] : await this.#bursts(agent, rounds.bursts, signal);
    await agent.stop(millis(0));
    const adoptions: number[] = [];
    for (let round = 0; round < rounds.adoptions; round++) adoptions.push(await this.#adopt(signal));
    return {
      services,
      coldStarts,
      syncs,
      startCpus,
      received,
      adoptions,
      rssAfterSync,
      rssPeak,
      rssIdle,
      idleCpu,
      rssAfterChanges,
      changes,
      cpuPerChange,
      apiServerCpuPerChange,
      bursts,
    };
  }

  /** An agent that has just started in a kernel without rules, and serves. */
  async start(): Promise<LabProcess> {
    return (await this.#coldStart()).agent;
  }

  /** One cold start, and one adoption of the rules that it wrote. */
  async startAndAdopt(mode: Mode, signal: AbortSignal): Promise<StartAndAdoption> {
    const { agent, took, synced } = await this.#coldStart(mode);
    const startCpu = cpuOf(agent.pid);
    await sleep(1000); // the start's garbage is collected when rules are there
    const memory = { rssPeak: peakRssOf(agent.pid), rss: rssOf(agent.pid) };
    await agent.stop(millis(0));
    return { coldStart: took, synced, startCpu, ...memory, adoption: await this.#adopt(signal, mode) };
  }

  /** From the start of the process, in a kernel without a table, to the answer of the last Service. */
  async #coldStart(mode: Mode = this.#mode): Promise<ColdStart> {
    await mode.flush(this.#benchLab);
    const start = monotonic();
    const wallStart = Date.now();
    const agent = this.#benchLab.startAgent(mode);
    const at = await this.#answer(agent, this.#pod);
    return { agent, took: at - start, synced: loggedAt(agent, 'in sync') - wallStart };
  }

  /** The table exists, but one endpoint moved while no agent ran: from the start to its answer. */
  async #adopt(signal: AbortSignal, mode: Mode = this.#mode): Promise<number> {
    this.#pod = other(this.#pod);
    await moveService(this.#benchLab.api, moved, this.#benchLab.addresses[this.#pod], signal);
    const start = monotonic();
    const agent = this.#benchLab.startAgent(mode);
    const at = await this.#answer(agent, this.#pod);
    await agent.stop(millis(0));
    return at - start;
  }

  async #changes(
    agent: LabProcess,
    count: number,
    signal: AbortSignal,
  ): Promise<Pick<SizeFigures, 'changes' | 'cpuPerChange' | 'apiServerCpuPerChange'>> {
    const { api, addresses, apiServerPid } = this.#benchLab;
    const changes: number[] = [];
    const before = { agent: cpuOf(agent.pid), apiServer: cpuOf(apiServerPid) };
    const began = monotonic();
    while (changes.length < count && monotonic() - began < changesTime) {
      this.#pod = other(this.#pod);
      await moveService(api, moved, addresses[this.#pod], signal);
      const acknowledged = monotonic();
      changes.push((await this.#answer(agent, this.#pod, 1)) - acknowledged);
      await sleep(10 + Math.random() * 20);
    }
    return {
      changes,
      cpuPerChange: (cpuOf(agent.pid) - before.agent) / changes.length,
      apiServerCpuPerChange: (cpuOf(apiServerPid) - before.apiServer) / changes.length,
    };
  }

  /** From the acknowledgement of the last of 500 writes to the last changed answer. */
  async #bursts(agent: LabProcess, rounds: number, signal: AbortSignal): Promise<readonly number[]> {
    const { api, addresses, prober } = this.#benchLab;
    const clusterIps: string[] = [];
    await inParallel(burstSize, async (index) => {
      clusterIps[index] = await createService(api, `burst-${index}`, [addresses.a], signal);
    });
    const wait = (index: number, by: Pod): Promise<number> =>
      this.#awaited(agent, by, prober.awaitAnswer({ ...tcp, address: clusterIps[index] ?? '' }, { by, ...patient }));
    await inParallel(burstSize, async (index) => void (await wait(index, 'a')));
    const tails: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const pod: Pod = round % 2 === 0 ? 'b' : 'a';
      const answers: Promise<number>[] = [];
      let acknowledged = 0;
      await inParallel(burstSize, async (index) => {
        await moveService(api, `burst-${index}`, addresses[pod], signal);
        acknowledged = monotonic();
        answers.push(wait(index, pod));
      });
      tails.push(Math.max(0, Math.max(...(await Promise.all(answers))) - acknowledged));
      await sleep(500);
    }
    return tails;
  }

  #answer(agent: LabProcess, by: Pod, interval = 2): Promise<number> {
    const wait = { by, interval, timeout: startTimeout };
    return this.#awaited(agent, by, this.#benchLab.prober.awaitAnswer({ ...tcp, address: this.#clusterIp }, wait));
  }

  async #awaited(agent: LabProcess, by: Pod, answer: ReturnType<BenchLab['prober']['awaitAnswer']>): Promise<number> {
    const ended = agent.ended.then((status) => Promise.reject(new Error(`the agent has ended with ${status}`)));
    ended.catch(() => undefined); // of interest only while the answer is awaited
    const { result, at } = await Promise.race([answer, ended]);
    if (result.status === 'answered' && result.by === by) return at;
    throw new Error(`pod ${by} never answered (last: ${result.status}); see ${agent.logFile}`);
  }
}

/** Milliseconds, if not said otherwise. */
export interface StartAndAdoption {
  readonly coldStart: number;
  /** Of the same start: until the agent knew the cluster. */
  readonly synced: number;
  /** CPU of the same start, of the agent and its ended children. */
  readonly startCpu: number;
  /** MB, a second after the start; at most, and then. */
  readonly rssPeak: number;
  readonly rss: number;
  readonly adoption: number;
}

/** An agent that has just started, and how long that took. */
interface ColdStart {
  readonly agent: LabProcess;
  readonly took: number;
  readonly synced: number;
}

/** Wall clock of the first line with this message. */
function loggedAt(agent: LabProcess, message: string): number {
  const line = readFileSync(agent.logFile, 'utf8')
    .split('\n')
    .find((one) => one.includes(`"msg":${JSON.stringify(message)}`));
  return line === undefined ? Number.NaN : (JSON.parse(line) as { readonly time: number }).time;
}

/** Short, because an unanswered attempt may have come before the rules, and its second SYN would come a second later. */
const tcp = { protocol: 'tcp', port: 80, timeout: 30 } as const;
const patient = { interval: 5, timeout: startTimeout };

function other(pod: Pod): Pod {
  return pod === 'a' ? 'b' : 'a';
}
