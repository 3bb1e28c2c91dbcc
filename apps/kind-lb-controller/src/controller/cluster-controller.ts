import { BoundedRunner, type RunOutcome } from '@switchyard/core/engine';
import { isEqual, millis, type Millis, runTogether, seconds, type ServiceKey } from '@switchyard/core';
import type { LoadBalancerService } from '../cluster/cluster-objects.ts';
import { type ClusterChange, type ClusterView, isInSync, type SyncedView } from '../cluster/cluster-store.ts';
import type { LoadBalancerId } from '../spec/load-balancer-spec.ts';
import { KeyedQueue } from './keyed-queue.ts';
import { askRuntime } from './runtime-failure.ts';
import { ServiceSync, type ServiceSyncOptions } from './service-sync.ts';

/** Whether a Service's spec changed (`intent`) or only its status (`answer`). */
type ServiceChange = 'none' | 'intent' | 'answer';

/** Services that are worked on at the same time. Runtimes bound their own work; most of these only wait, as for connections to end. */
const workers = 16;
/** Of one Service that fails. */
const serviceRetry = { first: seconds(1), max: seconds(300) };
/** Of asking the runtime what there is. */
const listRetry = { first: seconds(1), max: seconds(30) };
/** Interval of full checks without any event. */
const resyncInterval: Millis = seconds(600);

/**
 * Serves the Services of one cluster, each by itself: one that fails is tried again with a back-off of its own and delays no
 * other. Level-triggered: the work follows from the whole view and the runtime's load balancers. Nothing happens before everything
 * was listed in full, and only while `run` runs.
 */
export class ClusterController {
  readonly #options: ServiceSyncOptions;
  readonly #sync: ServiceSync;
  readonly #queue: KeyedQueue<ServiceKey>;
  readonly #listing: BoundedRunner;
  #view: SyncedView | undefined;
  readonly #seen = new Map<ServiceKey, LoadBalancerService>();
  /** Whether the runtime has tried to list its load balancers. After a failure, each Service reports it. */
  #hasAsked = false;
  #failure: string | undefined;

  constructor(options: ServiceSyncOptions) {
    const { clock } = options;
    this.#options = options;
    this.#sync = new ServiceSync(options);
    this.#queue = new KeyedQueue({
      clock,
      workers,
      retry: serviceRetry,
      run: (key, signal) => this.#syncOne(key, signal),
    });
    this.#listing = new BoundedRunner({
      clock,
      minGap: millis(100),
      resyncInterval,
      retry: listRetry,
      run: (_, signal) => this.#list(signal),
    });
  }

  /** The cluster has changed. Cheap; must not be called after `run` has ended. */
  observe(view: ClusterView, change: ClusterChange): void {
    if (!isInSync(view)) return;
    const isFirst = this.#view === undefined;
    this.#view = view;
    const keys = [...(change.kind === 'all' || isFirst ? view.services.keys() : change.keys)];
    const changes = new Map(keys.map((key) => [key, this.#changeOf(key, view.services.get(key))]));
    // Endpoints change all the time, and have nothing to do with addresses.
    if (isFirst || [...changes.values()].some((one) => one !== 'none')) {
      this.#options.addresses.observe(this.#options.cluster, view.services.values());
    }
    if (isFirst) this.#listing.poke();
    if (!this.#hasAsked) return;
    for (const [key, one] of changes) {
      if (one === 'intent' || change.kind === 'all') this.#queue.add(key);
      else this.#queue.touch(key);
    }
  }

  /** Handles a disturbance of load balancers of any cluster. Cheap. */
  disturbed(which: readonly LoadBalancerId[] | 'all'): void {
    if (which === 'all') {
      for (const key of this.#sync.known) this.#sync.disturb(key);
      if (this.#hasAsked) this.#addAll(true);
      return this.#listing.poke();
    }
    let hasUnknown = false;
    for (const { service } of which.filter((id) => this.#isOwn(id))) {
      // Its back-off goes on: one that dies again and again must not be hurried.
      if (this.#sync.disturb(service)) this.#queue.add(service);
      else hasUnknown = true; // just removed, or made by another process
    }
    if (hasUnknown) this.#listing.poke();
  }

  /** Runs until aborted; resolves when the work in flight has ended. */
  async run(signal: AbortSignal): Promise<void> {
    const { addresses, cluster } = this.#options;
    addresses.join(cluster, (keys) => {
      if (this.#hasAsked) for (const key of keys) this.#queue.add(key);
    });
    try {
      await runTogether([(stop) => this.#queue.run(stop), (stop) => this.#listing.run(stop)], signal);
    } finally {
      addresses.leave(cluster);
    }
  }

  /** Lists load balancers and reads the address source. Load balancers without a Service are queued too. */
  async #list(signal: AbortSignal): Promise<RunOutcome> {
    const { runtime, addresses, cluster, log } = this.#options;
    if (this.#view === undefined) return { status: 'done' };
    const answer = await askRuntime(async () => {
      await addresses.refresh(millis(0), signal);
      return { existing: await runtime.list(cluster, signal) };
    }, signal);
    const hadAsked = this.#hasAsked;
    this.#hasAsked = true;
    if ('reason' in answer) {
      const { message } = answer;
      if (message !== this.#failure) log.warn('cannot list load balancers; will be tried again', { cluster, message });
      this.#failure = message;
      this.#sync.cannotAdopt(answer);
      if (!hadAsked) this.#addAll(false);
      return { status: 'retry' };
    }
    const isBack = this.#failure !== undefined;
    if (isBack) log.info('the runtime works again', { cluster });
    this.#failure = undefined;
    addresses.adopt(cluster, answer.existing);
    this.#sync.adopt(answer.existing);
    for (const key of this.#sync.known) this.#sync.disturb(key);
    this.#addAll(isBack);
    return { status: 'done' };
  }

  #addAll(isOver: boolean): void {
    const keys = new Set([...(this.#view?.services.keys() ?? []), ...this.#sync.known]);
    for (const key of keys) {
      if (isOver) this.#queue.startOver(key);
      else this.#queue.add(key);
    }
  }

  #syncOne(key: ServiceKey, signal: AbortSignal): Promise<RunOutcome> {
    if (this.#view === undefined) return Promise.resolve({ status: 'done' });
    return this.#sync.sync(key, this.#view, signal);
  }

  #changeOf(key: ServiceKey, service: LoadBalancerService | undefined): ServiceChange {
    const before = this.#seen.get(key);
    if (service === undefined) return this.#seen.delete(key) ? 'intent' : 'none';
    this.#seen.set(key, service);
    if (before === service) return 'none';
    return before === undefined || !isEqual(intentOf(before), intentOf(service)) ? 'intent' : 'answer';
  }

  #isOwn({ cluster }: LoadBalancerId): boolean {
    return cluster === this.#options.cluster;
  }
}

/** A Service without what controllers write, such as we do. */
function intentOf(service: LoadBalancerService): LoadBalancerService {
  return { ...service, resourceVersion: '', ingress: [], conditions: [], finalizers: [] };
}
