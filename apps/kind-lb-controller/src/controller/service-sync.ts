import { asError, type Clock, isEqual, isExpected, type Logger, seconds, type ServiceKey } from '@switchyard/core';
import { type RunOutcome } from '@switchyard/core/engine';
import { isOurs, type LoadBalancerService } from '../cluster/cluster-objects.ts';
import type { SyncedView } from '../cluster/cluster-store.ts';
import { planService } from '../plan/plan-service.ts';
import { problemText } from '../plan/problem.ts';
import type { ServicePlan } from '../plan/service-plan.ts';
import type { PlanDefaults, ServiceSettings } from '../plan/settings.ts';
import type { EnsureOutcome, ExistingLoadBalancer, LoadBalancerRuntime } from '../runtime/runtime.ts';
import type { LoadBalancerId, LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import type { AddressAllocator } from './address-allocator.ts';
import { beginLoadBalancer, type KnownLoadBalancer, type KnownLoadBalancers } from './known-load-balancers.ts';
import { failedStatus, refusalReason, runningStatus } from './planned-status.ts';
import type { ServiceEvents } from './service-events.ts';
import { askRuntime, type RuntimeFailure } from './runtime-failure.ts';
import { ServiceRemoval } from './service-removal.ts';
import type { ServiceWriter } from './service-writer.ts';
import { TrackedWriter } from './tracked-writer.ts';

/** Parts that reconciling one Service's load balancer uses. */
export interface ServiceSyncOptions {
  /** Name of the cluster as kind knows it. */
  readonly cluster: string;
  readonly runtime: LoadBalancerRuntime;
  readonly addresses: AddressAllocator;
  readonly defaults: PlanDefaults;
  readonly writer: ServiceWriter;
  readonly events: ServiceEvents;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Maximum age of the address source: addresses that others took since must be known before one is granted. */
const maxSourceAge = seconds(5);

const done: RunOutcome = { status: 'done' };
const retry: RunOutcome = { status: 'retry' };

/**
 * Brings one Service's load balancer, its finalizer and its status in line with the cluster, in an order that can be broken
 * off anywhere and begun again: the finalizer is there before the load balancer, the status is written after the
 * runtime has applied what it says, and the finalizer goes last. Calls for different Services may overlap.
 */
export class ServiceSync {
  readonly #options: ServiceSyncOptions;
  readonly #loadBalancers: KnownLoadBalancers = new Map();
  readonly #writer: TrackedWriter;
  readonly #removal: ServiceRemoval;
  #unknownBecause: RuntimeFailure | undefined;

  constructor(options: ServiceSyncOptions) {
    this.#options = options;
    this.#writer = new TrackedWriter(options.writer, options.log);
    this.#removal = new ServiceRemoval({ ...options, loadBalancers: this.#loadBalancers, writer: this.#writer });
  }

  /** Services with a load balancer that exists or may exist. */
  get known(): readonly ServiceKey[] {
    return [...this.#loadBalancers.keys()];
  }

  /** Listing load balancers failed; until it succeeds no Service gets an address, and `why` is reported. */
  cannotAdopt(why: RuntimeFailure): void {
    this.#unknownBecause = why;
  }

  /** These exist, perhaps since an earlier controller. */
  adopt(existing: readonly ExistingLoadBalancer[]): void {
    this.#unknownBecause = undefined;
    for (const { id } of existing) beginLoadBalancer(this.#loadBalancers, id.service);
  }

  /** Marks a load balancer as disturbed: the next call asks the runtime. Returns false when none is known for this Service. */
  disturb(key: ServiceKey): boolean {
    const loadBalancer = this.#loadBalancers.get(key);
    if (loadBalancer === undefined) return false;
    loadBalancer.isDisturbed = true;
    return true;
  }

  /** Rejects only with `signal.reason`: logs any other failure and returns `retry`. */
  async sync(key: ServiceKey, view: SyncedView, signal: AbortSignal): Promise<RunOutcome> {
    const seen = view.services.get(key);
    try {
      if (seen === undefined) return await this.#removal.removeWithoutService(key, signal);
      const service = this.#writer.own.newest(seen);
      if (isOurs(service)) return await this.#serve(service, view, signal);
      return await this.#removal.retire(service, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#logFailure(key, error);
      return retry;
    }
  }

  async #serve(service: LoadBalancerService, view: SyncedView, signal: AbortSignal): Promise<RunOutcome> {
    const { addresses, events, cluster, defaults } = this.#options;
    const { key } = service.record;
    const isNew = this.#loadBalancers.get(key)?.applied === undefined;
    if (isNew || !addresses.isOpen) {
      const failure = await askRuntime(() => addresses.refresh(maxSourceAge, signal), signal);
      if (failure !== undefined) return this.#failed(service, { ...failure, problems: [] }, signal);
    }
    const grant = addresses.grantOf(this.#idOf(key));
    if (grant === undefined) {
      const why = this.#unknownBecause;
      return why === undefined ? retry : this.#failed(service, { ...why, problems: [] }, signal);
    }
    const plan = planService(service, {
      cluster,
      nodes: view.nodes,
      slices: view.slices,
      grantOf: (one) => addresses.grantOf({ cluster, service: one }),
      defaults,
      lastSettingsOf: (one) => this.#loadBalancers.get(one)?.settings,
    });
    const familiesWithout = plan.problems.filter(({ kind }) => kind === 'noNodes').length;
    const hasUsable = familiesWithout === 0 || familiesWithout < grant.addresses.length;
    events.nodes(service, plan.excludedNodes, hasUsable);
    const { planned } = plan;
    if (planned.status !== 'remove') events.problems(service, plan.problems, cluster);
    if (planned.status === 'run') return this.#run(plan, planned, signal);
    const failure = {
      reason: refusalReason(plan.problems),
      message: plan.problems.map((problem) => problemText(problem, cluster)).join('; '),
    };
    if (planned.status === 'keep') {
      await this.#writer.writeStatus(service, failedStatus(plan, { ...failure, cluster, isGone: false }), signal);
      return done;
    }
    return this.#removal.refuse(plan, failure, signal);
  }

  /** Finalizer, load balancer, status. */
  async #run(
    plan: ServicePlan,
    { spec, settings }: { readonly spec: LoadBalancerSpec; readonly settings: ServiceSettings },
    signal: AbortSignal,
  ): Promise<RunOutcome> {
    const { events } = this.#options;
    const { key } = plan.service.record;
    const service = await this.#writer.addFinalizer(plan.service, signal);
    if (service === undefined) return done; // the watch delivers the new state
    const loadBalancer = beginLoadBalancer(this.#loadBalancers, key);
    const ours: readonly (string | undefined)[] = spec.addresses;
    const isAnnounced = service.ingress.some(({ ip }) => ours.includes(ip));
    if (!isAnnounced && loadBalancer.ensuringReportedTo !== service.uid) {
      loadBalancer.ensuringReportedTo = service.uid;
      events.step(service, 'ensuring');
    }
    const before = loadBalancer.applied;
    const applied = await this.#ensure(loadBalancer, spec, signal);
    if ('reason' in applied) return this.#failed(service, { ...applied, problems: plan.problems }, signal);
    loadBalancer.settings = settings;
    await this.#writer.writeStatus(
      service,
      runningStatus({ ...plan, service }, { spec, settings }, applied.place),
      signal,
    );
    loadBalancer.ensuringReportedTo = undefined;
    if (!isAnnounced) events.step(service, 'ensured');
    else if (before !== undefined && !isEqual(before.spec, spec)) {
      events.step(service, isEqual(hostsOf(before.spec), hostsOf(spec)) ? 'updated' : 'updatedHosts');
    }
    return done;
  }

  /** Asks the runtime, unless it runs so already. */
  async #ensure(
    loadBalancer: KnownLoadBalancer,
    spec: LoadBalancerSpec,
    signal: AbortSignal,
  ): Promise<NonNullable<KnownLoadBalancer['applied']> | RuntimeFailure> {
    const { runtime, log } = this.#options;
    const before = loadBalancer.applied;
    if (before !== undefined && !loadBalancer.isDisturbed && isEqual(before.spec, spec)) return before;
    loadBalancer.isDisturbed = false; // it may be disturbed again while the runtime works
    let outcome: Awaited<ReturnType<typeof askRuntime<EnsureOutcome>>> | undefined;
    try {
      outcome = await askRuntime(() => runtime.ensure(spec, signal), signal);
    } finally {
      // However it went wrong: half of it may be done.
      if (outcome === undefined || 'reason' in outcome) loadBalancer.isDisturbed = true;
    }
    if ('reason' in outcome) return outcome;
    const { where, published, status } = outcome;
    loadBalancer.applied = { spec, place: { where, published } };
    const fields = { service: spec.id.service, addresses: spec.addresses, where };
    if (status === 'applied') log.info('load balancer applied', fields);
    return loadBalancer.applied;
  }

  async #failed(
    service: LoadBalancerService,
    failure: { readonly reason: string; readonly message: string; readonly problems: ServicePlan['problems'] },
    signal: AbortSignal,
  ): Promise<RunOutcome> {
    const { events, log, cluster } = this.#options;
    events.failed(service, 'ensure', failure.message);
    log.warn('cannot ensure a load balancer; will be tried again', {
      service: service.record.key,
      reason: failure.reason,
      message: failure.message,
    });
    await this.#writer.writeStatus(service, failedStatus(failure, { ...failure, cluster, isGone: false }), signal);
    return retry;
  }

  /** Logs an unexpected error with its stack, an expected one (API server unreachable) in one line. */
  #logFailure(service: ServiceKey, thrown: unknown): void {
    const { log } = this.#options;
    const error = asError(thrown);
    if (isExpected(error)) {
      log.warn('cannot bring a Service in line; will be tried again', { service, reason: error.message });
    } else log.error('an unexpected error; will be tried again', { service, error });
  }

  #idOf(service: ServiceKey): LoadBalancerId {
    return { cluster: this.#options.cluster, service };
  }
}

/** Targets that may get connections on any port. */
function hostsOf({ ports }: LoadBalancerSpec): readonly string[] {
  const names = ports.flatMap(({ targets }) =>
    targets.filter(({ draining }) => draining === 'no').map(({ name }) => name),
  );
  return [...new Set(names)].sort();
}
