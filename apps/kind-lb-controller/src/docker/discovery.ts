import { BoundedRunner, type RunOutcome } from '@switchyard/core/engine';
import { type Clock, ConfigError, HostError, type Logger, messageOf, millis } from '@switchyard/core';
import type { ClusterDiscovery, DiscoveredCluster } from '../controller/cluster-discovery.ts';
import { inspectNetwork } from './address-source.ts';
import { CliError } from './cli-failure.ts';
import { idOf, kindLabels, labels, testClusterPrefix } from './container-names.ts';
import { listContainers, removeContainer } from './containers.ts';
import type { DockerCli } from './docker-cli.ts';
import type { EngineContainer } from './container-inspect.ts';
import type { EngineEvent } from './engine-event.ts';
import type { EngineEvents } from './engine-events.ts';
import { type KindContainers, kindClusters, serverUrl } from './kind-containers.ts';
import { withServer } from './kubeconfig-text.ts';
import type { EngineNetwork } from './network-inspect.ts';

/** Where kind clusters are looked for. */
export interface KindDiscoveryOptions {
  readonly cli: DockerCli;
  readonly events: EngineEvents;
  /** Name of the network that kind's nodes are on. */
  readonly network: string;
  /** Names of the clusters wanted; empty: all but those of test runs. */
  readonly clusters: readonly string[];
  /** This machine's host name: if a container on the network has it, we are that container. */
  readonly ownHostname: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Interval of searches without any event. */
const resyncInterval = millis(300_000);
/** kind starts and stops several containers at once. */
const minGap = millis(200);
const retry = { first: millis(500), max: millis(5000) };

/**
 * The kind clusters of a container engine, found by kind's labels. Also removes the load balancers of clusters that were deleted: those whose
 * cluster was found in this way once, and of which no container is left.
 */
export class KindDiscovery implements ClusterDiscovery {
  readonly #options: KindDiscoveryOptions;

  constructor(options: KindDiscoveryOptions) {
    this.#options = options;
  }

  async watchClusters(onChange: (clusters: readonly DiscoveredCluster[]) => void, signal: AbortSignal): Promise<void> {
    const search = new Search(this.#options, onChange);
    const runner = new BoundedRunner({
      clock: this.#options.clock,
      minGap,
      resyncInterval,
      retry,
      run: (_, aborted) => search.run(aborted),
    });
    using _listening = this.#options.events.listen({
      onEvent: (event) => {
        if (!isOfKind(event)) return;
        search.forget(event.labels[kindLabels.cluster] ?? '');
        runner.poke();
      },
      onEngine: () => runner.poke(),
    });
    runner.poke();
    await runner.run(signal);
    signal.throwIfAborted();
  }
}

/** nerdctl's events have no labels: any container may be kind's. */
function isOfKind({ labels: all, name }: EngineEvent): boolean {
  return all[kindLabels.cluster] !== undefined || name === '';
}

/** A cluster that was found. Its kubeconfig is valid while the same containers run. */
interface Found {
  readonly identity: string;
  readonly kubeconfig: string;
}

class Search {
  readonly #options: KindDiscoveryOptions;
  readonly #onChange: (clusters: readonly DiscoveredCluster[]) => void;
  readonly #found = new Map<string, Found>();
  /** Clusters whose unusable kubeconfig has been logged. */
  readonly #unreadable = new Set<string>();
  #reported: string | undefined;
  #isFailureLogged = false;
  readonly #loggedElsewhere = new Set<string>();
  readonly #loggedTestClusters = new Set<string>();
  #loggedMissing = '';
  #isInside: boolean | undefined;

  constructor(options: KindDiscoveryOptions, onChange: (clusters: readonly DiscoveredCluster[]) => void) {
    this.#options = options;
    this.#onChange = onChange;
  }

  /** Makes the next search read the kubeconfig of a cluster again. */
  forget(cluster: string): void {
    const found = this.#found.get(cluster);
    if (found !== undefined) this.#found.set(cluster, { ...found, identity: '' });
  }

  /** One look at all there is. Rejects when aborted, or with `ConfigError` for what will not get better. */
  async run(signal: AbortSignal): Promise<RunOutcome> {
    const { cli, log, clusters: wanted } = this.#options;
    try {
      const all = kindClusters(await listContainers(cli, [`label=${kindLabels.cluster}`], signal));
      this.#logMissing(all.map(({ cluster }) => cluster));
      const ours = all.filter(({ cluster }) =>
        wanted.length === 0 ? !this.#isOfTest(cluster) : wanted.includes(cluster),
      );
      for (const name of this.#found.keys())
        if (!ours.some(({ cluster }) => cluster === name)) this.#found.delete(name);
      let isComplete = true;
      for (const one of ours) isComplete = (await this.#look(one, signal)) && isComplete;
      this.#reportClusters();
      await this.#removeOfDeletedClusters(new Set(all.map(({ cluster }) => cluster)), signal);
      this.#isFailureLogged = false;
      return isComplete ? { status: 'done' } : { status: 'retry' };
    } catch (error) {
      signal.throwIfAborted();
      const reason = messageOf(error);
      // Waiting does not help: the operator must act.
      if (
        error instanceof CliError &&
        ['programMissing', 'programTooOld', 'notPermitted'].includes(error.failure.kind)
      ) {
        throw new ConfigError('lb.engine', reason, { cause: error });
      }
      if (!this.#isFailureLogged) log.warn('kind clusters cannot be looked for', { reason });
      this.#isFailureLogged = true;
      return { status: 'retry' };
    }
  }

  /** Looks at one cluster. Returns false when its API server is not up yet, for another look. */
  async #look(one: KindContainers, signal: AbortSignal): Promise<boolean> {
    const { cluster, controlPlanes, server } = one;
    const [controlPlane] = controlPlanes;
    if (controlPlane === undefined || server === undefined) return true; // a container that starts is an event
    if (await this.#isElsewhere(cluster, server, signal)) {
      this.#found.delete(cluster);
      return true;
    }
    const url = serverUrl(server, await this.#isInsideNetwork(signal));
    const identity = [controlPlane.id, server.id, url].join(' ');
    if (url === undefined || this.#found.get(cluster)?.identity === identity) return url !== undefined;
    const cat = ['exec', controlPlane.name, 'cat', '/etc/kubernetes/admin.conf'];
    const answer = await this.#options.cli.try(cat, {}, signal);
    if (answer.status === 'failed') return false; // kind is still at it
    try {
      this.#found.set(cluster, { identity, kubeconfig: withServer(answer.stdout, url) });
      this.#unreadable.delete(cluster);
      return true;
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      const isLogged = this.#unreadable.has(cluster);
      if (!isLogged) this.#options.log.warn('a kind cluster cannot be served', { cluster, reason: error.message });
      this.#unreadable.add(cluster); // the others are served
      return false;
    }
  }

  /** Clusters of `./dev e2e` bring a controller of their own, which a second one would keep from its Lease. */
  #isOfTest(cluster: string): boolean {
    if (!cluster.startsWith(testClusterPrefix)) return false;
    if (!this.#loggedTestClusters.has(cluster)) {
      const advice = `start a controller with --cluster ${cluster} to serve it`;
      this.#options.log.info('a cluster of a test run is left alone', { cluster, advice });
    }
    this.#loggedTestClusters.add(cluster);
    return true;
  }

  #reportClusters(): void {
    const clusters = [...this.#found]
      .map(([name, { kubeconfig }]) => ({ name, kubeconfig }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const text = JSON.stringify(clusters);
    if (text === this.#reported) return;
    this.#reported = text;
    this.#onChange(clusters);
  }

  /**
   * Whether the cluster's nodes are only on other networks, where load balancers cannot reach them. False if this controller's network
   * does not exist: then conditions of the Services report that.
   */
  async #isElsewhere(cluster: string, { networks }: EngineContainer, signal: AbortSignal): Promise<boolean> {
    const { network, log } = this.#options;
    if (networks.length === 0 || networks.includes(network)) return false;
    if ((await this.#inspectNetwork(signal)) === undefined) return false;
    if (!this.#loggedElsewhere.has(cluster)) {
      const advice = 'serve it by a controller with --network';
      log.warn('a cluster on another network is left alone', { cluster, networks, network, advice });
    }
    this.#loggedElsewhere.add(cluster);
    return true;
  }

  /** Logs the clusters waited for: otherwise a mistyped name would go unnoticed. */
  #logMissing(there: readonly string[]): void {
    const { clusters: wanted, log } = this.#options;
    const missing = wanted.filter((name) => !there.includes(name));
    const isMissing = wanted.length === 0 ? there.length === 0 : missing.length > 0;
    const text = isMissing ? JSON.stringify([missing, there]) : '';
    if (isMissing && text !== this.#loggedMissing) {
      log.info('waiting for a kind cluster', { wanted: wanted.length === 0 ? 'any' : missing, there });
    }
    this.#loggedMissing = text;
  }

  /** Undefined: there is none of that name. */
  async #inspectNetwork(signal: AbortSignal): Promise<EngineNetwork | undefined> {
    try {
      return await inspectNetwork(this.#options.cli, this.#options.network, signal);
    } catch (error) {
      if (error instanceof CliError && error.failure.kind === 'noSuchNetwork') return undefined;
      throw error;
    }
  }

  /** False for a missing network: clusters are served nevertheless, so that conditions of their Services report it. */
  async #isInsideNetwork(signal: AbortSignal): Promise<boolean> {
    if (this.#isInside !== undefined) return this.#isInside;
    const { cli, network: name, ownHostname } = this.#options;
    const network = await this.#inspectNetwork(signal);
    if (network === undefined) return false;
    const containers = network.containers ?? (await listContainers(cli, [`network=${name}`], signal));
    this.#isInside = containers.some((one) => one.name === ownHostname || isShortId(ownHostname, one.id));
    return this.#isInside;
  }

  async #removeOfDeletedClusters(there: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const { cli, log } = this.#options;
    for (const { name, labels: all } of await listContainers(cli, [`label=${labels.discovered}=true`], signal)) {
      const cluster = idOf(all)?.cluster;
      if (cluster === undefined || there.has(cluster)) continue;
      log.info('a load balancer of a deleted cluster is removed', { cluster, container: name });
      await removeContainer(cli, name, signal);
    }
  }
}

/** Engines give a container the first 12 digits of its id as host name. */
function isShortId(hostname: string, id: string): boolean {
  return /^[0-9a-f]{12,}$/.test(hostname) && id.startsWith(hostname);
}
