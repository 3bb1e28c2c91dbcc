import { type Clock, isExpected, type Logger, type Millis, seconds } from '@switchyard/core';
import { kubeconfigTextConnection } from '@switchyard/core/kubernetes';
import type { DiscoveredCluster } from './cluster-discovery.ts';
import type { ReachableCluster } from './serve-cluster.ts';

/** Callbacks and surroundings of a set of clusters. */
export interface ClusterSetOptions {
  /** Runs until aborted; may reject with anything. */
  readonly serve: (cluster: ReachableCluster, signal: AbortSignal) => Promise<void>;
  /** Called when a cluster no longer exists. */
  readonly onGone: (cluster: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Served {
  readonly kubeconfig: string;
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

/** Pause after serving ended with an unexpected error. */
const restartPause: Millis = seconds(10);

/**
 * The clusters that are served now, independently of each other. A cluster that fails is served again after a pause, one with a changed
 * kubeconfig at once.
 */
export class ClusterSet implements AsyncDisposable {
  readonly #options: ClusterSetOptions;
  readonly #served = new Map<string, Served>();
  /** End of serving per cluster, stopping ones included. */
  readonly #tails = new Map<string, Promise<void>>();

  constructor(options: ClusterSetOptions) {
    this.#options = options;
  }

  /** Whether the cluster is in the set. */
  has(name: string): boolean {
    return this.#served.has(name);
  }

  /** Sets the clusters to serve. */
  update(clusters: readonly DiscoveredCluster[]): void {
    const { log, onGone } = this.#options;
    const wanted = new Map(clusters.map((cluster) => [cluster.name, cluster]));
    for (const [name, { kubeconfig }] of this.#served) {
      const next = wanted.get(name);
      if (next?.kubeconfig === kubeconfig) continue;
      const stopped = this.#stop(name);
      if (next === undefined) {
        log.info('a cluster is gone', { cluster: name });
        void stopped.then(() => this.has(name) || onGone(name));
      }
    }
    for (const cluster of clusters) if (!this.has(cluster.name)) this.#start(cluster);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of this.#served.keys()) void this.#stop(name);
    await Promise.all(this.#tails.values());
  }

  #start(cluster: DiscoveredCluster): void {
    const { name, kubeconfig } = cluster;
    const stop = new AbortController();
    const before = this.#tails.get(name) ?? Promise.resolve();
    const done = before.then(() => this.#serve(cluster, stop.signal));
    this.#served.set(name, { kubeconfig, stop, done });
    this.#tails.set(name, done);
  }

  #stop(name: string): Promise<void> {
    const served = this.#served.get(name);
    this.#served.delete(name);
    served?.stop.abort(new DOMException('the cluster is not served any more', 'AbortError'));
    return served?.done ?? Promise.resolve();
  }

  /** Never rejects. */
  async #serve({ name, kubeconfig }: DiscoveredCluster, signal: AbortSignal): Promise<void> {
    const { serve, clock, log } = this.#options;
    while (!signal.aborted) {
      try {
        const connection = await kubeconfigTextConnection(kubeconfig, `of cluster ${name}`, clock);
        await serve({ name, connection }, signal);
      } catch (error) {
        if (signal.aborted) return;
        const reason = isExpected(error) ? error.message : error;
        log.error('a cluster cannot be served; will be tried again', { cluster: name, reason });
      }
      await clock.sleep(restartPause, signal).catch(() => undefined);
    }
  }
}
