import { type Cidr, type Clock, isEqual, type Logger, messageOf, millis, type Port } from '@switchyard/core';
import type { AddressSource } from '../plan/ip-pool.ts';
import type { EnsureOutcome, ExistingLoadBalancer, LoadBalancerRuntime, RuntimeListener } from '../runtime/runtime.ts';
import type { LoadBalancerId, LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import { readAddressSource } from './address-source.ts';
import { CliError } from './cli-failure.ts';
import { type ContainerPlan, publishablePorts } from './container-arguments.ts';
import { failedOutcome } from './container-failures.ts';
import { addressesOf, containerName, idOf, labels } from './container-names.ts';
import {
  drainContainer,
  inspectContainer,
  listContainers,
  makeContainer,
  removeContainer,
  type RunningContainer,
  stepTowards,
} from './containers.ts';
import { DisturbanceThrottle } from './disturbance-throttle.ts';
import type { DockerCli } from './docker-cli.ts';
import type { EngineEvent } from './engine-event.ts';
import { EngineFactsReader } from './engine-facts.ts';
import type { EngineEvents } from './engine-events.ts';
import { HealthWatch } from './health-watch.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import { publishedTexts } from './published-ports.ts';
import { runWorker, type WorkerResult } from './run-worker.ts';

/** Where and how load balancers run as containers. */
export interface DockerRuntimeOptions {
  readonly cli: DockerCli;
  readonly events: EngineEvents;
  /** Name of the network that kind's nodes are on. */
  readonly network: string;
  readonly image: string;
  /** Where addresses come from; empty: the top end of each of the network's subnets. */
  readonly pool: readonly Cidr[];
  /** Address of this machine on which Service ports are published, such as `127.0.0.1`; undefined: they are not. */
  readonly publishOn: string | undefined;
  /** Whether clusters were found by their kind containers, so that their load balancers may be removed when those are gone. */
  readonly isDiscovered: boolean;
  /** Whether changes of all targets are reported, not only of those that kernel rules depend on. Costs a process per load balancer. */
  readonly followsTargets: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  readonly listener: RuntimeListener;
}

/** A load balancer known to run. Until an event of the engine concerns it, an equal spec needs no work. */
interface Applied {
  readonly spec: LoadBalancerSpec;
  readonly containerId: string;
  readonly outcome: Extract<EnsureOutcome, { status: 'applied' | 'unchanged' }>;
}

/** One that is being worked on, and the ids of its containers that died meanwhile. */
type Busy = Set<string>;

const maxSteps = 8;
const stepPause = millis(100);

/** Load balancers as containers of their own, each with HAProxy as its first process. Disposing it leaves them running. */
export class DockerRuntime implements LoadBalancerRuntime {
  readonly #options: DockerRuntimeOptions;
  readonly #applied = new Map<string, Applied>();
  /** Names of containers that are there, or were once: others are probably missing, which saves a look. */
  readonly #seen = new Set<string>();
  readonly #busy = new Map<string, Busy>();
  readonly #mutex = new KeyedMutex();
  readonly #disturbances: DisturbanceThrottle;
  readonly #health: HealthWatch;
  readonly #facts: EngineFactsReader;
  readonly #listening: Disposable;

  constructor(options: DockerRuntimeOptions) {
    this.#options = options;
    this.#disturbances = new DisturbanceThrottle(options.clock, options.listener);
    this.#facts = new EngineFactsReader(options);
    const followHealth = (container: string, signal: AbortSignal): Promise<string | undefined> =>
      this.#followHealth(container, signal);
    this.#health = new HealthWatch({ ...options, followHealth });
    this.#listening = options.events.listen({
      onEvent: (event) => this.#onEvent(event),
      onEngine: () => this.#onEngine(),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listening[Symbol.dispose]();
    this.#disturbances[Symbol.dispose]();
    await this.#health[Symbol.asyncDispose]();
  }

  addressSource(signal: AbortSignal): Promise<AddressSource> {
    const { cli, network, pool } = this.#options;
    return readAddressSource({ cli, network, pool }, signal);
  }

  async list(cluster: string, signal: AbortSignal): Promise<readonly ExistingLoadBalancer[]> {
    const containers = await listContainers(this.#options.cli, [`label=${labels.cluster}=${cluster}`], signal);
    for (const { name } of containers) this.#seen.add(name);
    // The caller is about to reconcile all of them: at a resync, or after another controller served the cluster.
    for (const [name, { spec }] of this.#applied) if (spec.id.cluster === cluster) this.#applied.delete(name);
    return containers.flatMap((one) => {
      const id = idOf(one.labels);
      return id?.cluster === cluster && one.name === containerName(id)
        ? [{ id, addresses: addressesOf(one.labels) }]
        : [];
    });
  }

  async ensure(spec: LoadBalancerSpec, signal: AbortSignal): Promise<EnsureOutcome> {
    const name = containerName(spec.id);
    const known = this.#applied.get(name);
    if (known !== undefined && isEqual(known.spec, spec)) return { ...known.outcome, status: 'unchanged' };
    try {
      return await this.#exclusive(name, (died) => this.#ensure(spec, died, signal), signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof CliError)) throw error;
      if (['noSuchImage', 'noSuchNetwork'].includes(error.failure.kind)) this.#facts.forget();
      return failedOutcome(error);
    }
  }

  async remove(id: LoadBalancerId, signal: AbortSignal): Promise<void> {
    const { cli } = this.#options;
    const name = containerName(id);
    const work = async (): Promise<void> => {
      this.#applied.delete(name);
      await this.#health.forget(name);
      const container = await inspectContainer(cli, name, signal);
      if (container === undefined || !isEqual(idOf(container.labels), id)) return;
      if (container.state === 'running') await drainContainer(cli, name, signal);
      await removeContainer(cli, name, signal);
      this.#seen.delete(name);
      this.#disturbances.forget(name);
    };
    await this.#exclusive(name, work, signal);
  }

  async #ensure(spec: LoadBalancerSpec, died: Busy, signal: AbortSignal): Promise<EnsureOutcome> {
    const { cli, clock, publishOn } = this.#options;
    const name = containerName(spec.id);
    this.#applied.delete(name);
    const since = clock.now();
    const plan = await this.#planOf(spec, signal);
    const elsewhere = new Set<Port>();
    let isMissing = !this.#seen.has(name);
    this.#seen.add(name);
    let last = 'another process keeps changing it';
    for (let step = 0; step < maxSteps; step++) {
      const present = await (isMissing ? makeContainer : stepTowards)(cli, plan, elsewhere, signal);
      isMissing = false;
      if (present.status === 'failed') return present;
      if (present.status === 'changed') continue;
      const answer = await runWorker(
        cli,
        name,
        { command: 'apply', spec, isPublished: publishOn !== undefined },
        signal,
      );
      if (answer.status === 'failed') return answer;
      if (answer.status !== 'gone') {
        await this.#health.watch(name, spec, since);
        return this.#remember({ spec, died, status: answer.status, container: present.container });
      }
      last = answer.message;
      await clock.sleep(millis(stepPause * (step + 1)), signal);
    }
    const message = `container ${name} does not stay up: ${last}; look at '${cli.kind} logs ${name}'`;
    return { status: 'failed', reason: 'ContainerFailed', message };
  }

  #remember(result: RunningResult): EnsureOutcome {
    const { spec, died, status, container } = result;
    const { id: containerId, name } = container;
    const outcome = { status, where: `container ${name}`, published: publishedTexts(container.published) } as const;
    if (died.has(containerId)) this.#disturbances.add(name, spec.id);
    else this.#applied.set(name, { spec, containerId, outcome });
    return outcome;
  }

  async #planOf(spec: LoadBalancerSpec, signal: AbortSignal): Promise<ContainerPlan> {
    const { network, image, publishOn, isDiscovered } = this.#options;
    const facts = await this.#facts.look(signal);
    return {
      id: spec.id,
      network,
      ...facts,
      image,
      addresses: spec.addresses,
      publishOn,
      ports: publishOn === undefined ? [] : publishablePorts(spec),
      isDiscovered,
    };
  }

  async #followHealth(container: string, signal: AbortSignal): Promise<string | undefined> {
    const request = { command: 'followHealth' } as const;
    const work = (): Promise<WorkerResult> => runWorker(this.#options.cli, container, request, signal);
    try {
      const answer = await this.#mutex.run(container, work, signal);
      return answer.status === 'failed' ? answer.message : undefined; // after `gone` comes `ensure`: it is an event
    } catch (error) {
      return messageOf(error); // aborted
    }
  }

  #exclusive<T>(name: string, work: (died: Busy) => Promise<T>, signal: AbortSignal): Promise<T> {
    const noted = async (): Promise<T> => {
      const died: Busy = new Set();
      this.#busy.set(name, died);
      try {
        return await work(died);
      } finally {
        this.#busy.delete(name);
      }
    };
    return this.#mutex.run(name, noted, signal);
  }

  #onEvent({ action, id: containerId, labels: all }: EngineEvent): void {
    const id = idOf(all);
    const name = id === undefined ? this.#nameOf(containerId) : containerName(id);
    // A restart follows a `died` event; the event of an own start may arrive late.
    if (name === undefined || action === 'created' || action === 'started') return;
    this.#busy.get(name)?.add(containerId);
    const applied = this.#applied.get(name);
    if (applied?.containerId !== containerId) return; // another container, or one already being changed
    this.#applied.delete(name);
    this.#options.log.debug('a load balancer was disturbed', { container: name, action });
    this.#disturbances.add(name, applied.spec.id);
  }

  /** nerdctl's events have no labels. */
  #nameOf(containerId: string): string | undefined {
    return [...this.#applied].find(([, { containerId: id }]) => id === containerId)?.[0];
  }

  /** Also called at the start, when nothing is applied: Services may wait for the engine. */
  #onEngine(): void {
    this.#facts.forget();
    this.#applied.clear();
    this.#options.listener.onDisturbed('all');
  }
}

interface RunningResult {
  readonly spec: LoadBalancerSpec;
  readonly died: Busy;
  readonly status: 'applied' | 'unchanged';
  readonly container: RunningContainer;
}
