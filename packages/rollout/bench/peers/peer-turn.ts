import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { asError, millis } from '@switchyard/core';
import type { LabProcess } from '@switchyard/lab';
import { inParallel, moveService } from '../big-cluster.ts';
import { cpuOf, monotonic, rssOf } from '../process-figures.ts';
import { podPort } from '../bench-lab.ts';
import type { PeersOptions } from './options.ts';
import type { PeerFigures } from './peer-figures.ts';
import { type PeerPlace, type PeersLab, pinned } from './peers-lab.ts';

/** Cluster IPs of the Services that are measured; all others are fillers. */
export interface MeasuredServices {
  /** The last one in the order of creation and of names. */
  readonly moved: string;
  readonly burst: readonly string[];
  /** Its endpoint only takes connections. */
  readonly connect: string;
}

/** Names of the measured Services. */
export const measuredNames: {
  readonly moved: string;
  readonly connect: string;
  readonly burst: (index: number) => string;
} = { moved: 'zz-moved', connect: 'yy-connect', burst: (index) => `burst-${index}` };

/** Raised when a proxy does not get something done in its time. */
class LateError extends Error {
  override readonly name = 'LateError';
}

/** Raised when a proxy ends by itself. */
class EndedError extends Error {
  override readonly name = 'EndedError';
}

type Pod = 'a' | 'b';

/** State of the API server that all turns share. */
export interface ClusterPods {
  moved: Pod;
  burst: Pod;
}

/** Everything that a turn needs. */
export interface TurnParts {
  readonly peersLab: PeersLab;
  readonly place: PeerPlace;
  readonly services: MeasuredServices;
  readonly pods: ClusterPods;
  readonly options: PeersOptions;
  /** Where the samples go. */
  readonly figures: PeerFigures;
  readonly isLast: boolean;
  readonly progress: (text: string) => void;
}

/**
 * One turn of a proxy on its node: cold start, changes, burst, connections, restart; in the last turn memory after many changes
 * too. A turn ends early when the proxy is late (`figures.late` names what it did not do) or ends by itself (`figures.failure`).
 * The node has no rules before and afterwards.
 */
export async function takeTurn(parts: TurnParts, signal: AbortSignal): Promise<void> {
  const turn = new Turn(parts, signal);
  try {
    await turn.run();
  } catch (error) {
    if (error instanceof LateError) {
      parts.figures.late.push(error.message);
      parts.progress(`${error.message} did not end in time`);
    } else if (error instanceof EndedError) {
      parts.figures.failure = error.message;
      await parts.place.prober[Symbol.asyncDispose](); // it would go on to ask, beside the other proxies
      parts.progress(error.message);
    } else throw error;
  } finally {
    await turn.end();
  }
}

class Turn {
  readonly #parts: TurnParts;
  readonly #signal: AbortSignal;
  readonly #aborted: Promise<never>;
  #proxy: LabProcess | undefined;

  constructor(parts: TurnParts, signal: AbortSignal) {
    this.#parts = parts;
    this.#signal = signal;
    this.#aborted = new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(asError(signal.reason)), { once: true });
    });
    this.#aborted.catch(() => undefined); // of interest only while an answer is awaited
  }

  async run(): Promise<void> {
    const { figures, options, isLast, progress, services, peersLab } = this.#parts;
    figures.connectBare.push(await this.#connect(peersLab.addresses.c, podPort));
    progress('cold start');
    const { proxy, took } = await this.#start('cold start');
    figures.coldStarts.push(took);
    await sleep(options.settle, undefined, { signal: this.#signal });
    figures.coldStartCpu.push(cpuOf(proxy.pid)); // the kernel counts a child when it has ended
    figures.rssAfterSync.push(rssOf(proxy.pid));
    progress('endpoint changes');
    await this.#changes(proxy);
    if (options.burst > 0) {
      progress(`${options.burst} changes at once`);
      await this.#burst(proxy);
    }
    figures.connectDirect.push(await this.#connect(peersLab.addresses.c, podPort));
    figures.connectService.push(await this.#connect(services.connect, 80));
    if (isLast) {
      progress(`${options.churn} changes for memory`);
      figures.rssAfterChanges = await this.#churn(proxy);
    }
    progress('restart');
    await this.#stop();
    await this.#move();
    figures.restarts.push((await this.#start('restart')).took);
  }

  /** Stops the proxy and empties the node. */
  async end(): Promise<void> {
    const { place, peersLab } = this.#parts;
    await this.#stop();
    await place.peer.reset(place.node, peersLab.site);
  }

  async #start(what: string): Promise<{ readonly proxy: LabProcess; readonly took: number }> {
    const { place, peersLab } = this.#parts;
    const start = monotonic();
    const proxy = await place.peer.start(place.node, peersLab.site);
    this.#proxy = proxy;
    return { proxy, took: (await this.#movedAnswer(what, 2)) - start };
  }

  async #stop(): Promise<void> {
    await this.#proxy?.stop(millis(0));
    this.#proxy = undefined;
  }

  /** Writes the other pod into the moved Service; resolves with the time of the API server's answer. */
  async #move(): Promise<number> {
    const { peersLab, pods } = this.#parts;
    pods.moved = other(pods.moved);
    await moveService(peersLab.api, measuredNames.moved, peersLab.addresses[pods.moved], this.#signal);
    return monotonic();
  }

  async #changes(proxy: LabProcess): Promise<void> {
    const { figures, options } = this.#parts;
    const end = monotonic() + options.patience;
    const before = cpuOf(proxy.pid);
    let count = 0;
    for (; count < options.changes && monotonic() < end; count++) {
      const acknowledged = await this.#move();
      figures.changes.push((await this.#movedAnswer('endpoint change', 1)) - acknowledged);
      await sleep(10 + Math.random() * 20, undefined, { signal: this.#signal });
    }
    figures.cpuPerChange.push((cpuOf(proxy.pid) - before) / count);
  }

  async #burst(proxy: LabProcess): Promise<void> {
    const { peersLab, pods, services, options, figures } = this.#parts;
    pods.burst = other(pods.burst);
    const { burst: pod } = pods;
    const before = cpuOf(proxy.pid);
    const answers: Promise<{ readonly at: number; readonly took: number }>[] = [];
    let last = 0;
    await inParallel(options.burst, async (index) => {
      await moveService(peersLab.api, measuredNames.burst(index), peersLab.addresses[pod], this.#signal);
      const acknowledged = monotonic();
      last = acknowledged;
      const at = this.#answer('burst', services.burst[index] ?? '', pod, 10);
      const answer = at.then((time) => ({ at: time, took: time - acknowledged }));
      answer.catch(() => undefined); // all are awaited below
      answers.push(answer);
    });
    const all = await Promise.all(answers);
    figures.burstEach.push(...all.map(({ took }) => took));
    figures.burstTails.push(Math.max(0, Math.max(...all.map(({ at }) => at)) - last));
    figures.burstCpu.push(cpuOf(proxy.pid) - before);
  }

  /** Resident MB after many changes that nothing waited for. */
  async #churn(proxy: LabProcess): Promise<number> {
    const { peersLab, options, pods } = this.#parts;
    for (let change = 0; change < options.churn; change++) {
      const pod = change % 2 === 0 ? other(pods.burst) : pods.burst;
      const name = options.burst === 0 ? measuredNames.connect : measuredNames.burst((change >> 1) % options.burst);
      const address = options.burst === 0 ? peersLab.addresses.c : peersLab.addresses[pod];
      await moveService(peersLab.api, name, address, this.#signal);
    }
    await this.#move();
    await this.#movedAnswer('many changes', 5);
    await sleep(options.settle, undefined, { signal: this.#signal });
    return rssOf(proxy.pid);
  }

  #movedAnswer(what: string, interval: number): Promise<number> {
    const { services, pods } = this.#parts;
    return this.#answer(what, services.moved, pods.moved, interval);
  }

  /** When a pod answered at a cluster IP. Rejects with `LateError` when its time is over, with `EndedError` when the proxy ends. */
  async #answer(what: string, address: string, by: Pod, interval: number): Promise<number> {
    const { place, options } = this.#parts;
    const proxy = this.#proxy;
    const request = { protocol: 'tcp', address, port: 80, timeout: 30 } as const; // the second SYN would come a second later
    const answer = place.prober.awaitAnswer(request, { by, interval, timeout: options.patience });
    const ended = proxy?.ended.then((status) => Promise.reject(endedError(proxy, status)));
    ended?.catch(() => undefined); // of interest only while the answer is awaited
    const { result, at } = await Promise.race([answer, this.#aborted, ...(ended === undefined ? [] : [ended])]);
    if (result.status === 'answered' && result.by === by) return at;
    throw new LateError(what);
  }

  /** Microseconds of a connect(), the median. */
  async #connect(address: string, port: number): Promise<number> {
    const { place, peersLab, options } = this.#parts;
    const command = ['-c', pinned.client, peersLab.connections, 'tcp', address, String(port), String(options.connects)];
    const { exitCode, stdout, stderr } = await place.client.run('taskset', command);
    if (exitCode !== 0) throw new Error(`connecting to ${address}:${port} from ${place.client.name}: ${stderr}`);
    return (JSON.parse(stdout) as { readonly median: number }).median / 1000;
  }
}

/** With the last line of the log, which goes with the lab. */
function endedError({ logFile }: LabProcess, status: number | string): EndedError {
  const last = readFileSync(logFile, 'utf8').trim().split('\n').at(-1) ?? '';
  return new EndedError(`it ended with ${status}: ${last.slice(0, 500)}`);
}

function other(pod: Pod): Pod {
  return pod === 'a' ? 'b' : 'a';
}
