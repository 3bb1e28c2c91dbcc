import {
  type ApiServerError,
  BoundedRunner,
  type Clock,
  type Logger,
  messageOf,
  millis,
  type RunOutcome,
  seconds,
  type ServiceKey,
} from '@switchyard/core';
import { isOurs } from '../cluster/cluster-objects.ts';
import { desiredStatus, hasLeftovers } from './desired-status.ts';
import type { HealthProfile } from '../spec/health-profile.ts';
import type { AddressSource } from '../plan/ip-pool.ts';
import { planServices, planKey, problemText, type ServicePlan } from '../plan/plan.ts';
import type { LoadBalancerRuntime } from '../runtime/runtime.ts';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import { clusterName, specsOfPlans } from './specs-of-plans.ts';
import type { ClusterView } from '../cluster/cluster-store.ts';
import type { StatusWriter } from './write-status.ts';

/** What a controller works with. */
export interface ControllerOptions {
  readonly source: AddressSource;
  readonly profile: HealthProfile;
  readonly runtime: LoadBalancerRuntime;
  readonly statusWriter: StatusWriter;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Changes come in groups; a reload takes all that came within this time. */
const minGap = millis(100);

/**
 * Makes HAProxy and the Services' status say what the cluster's current state asks for. Level-triggered: every run
 * starts from the whole view, so a lost or repeated event changes nothing. Nothing happens before Services and Nodes
 * were listed in full.
 */
export class Controller {
  readonly #options: ControllerOptions;
  readonly #runner: BoundedRunner;
  #view: ClusterView = { services: undefined, nodes: undefined, slices: undefined };
  /** Last told problems by Service, so that each is logged once. */
  #told: ReadonlyMap<ServiceKey, string> = new Map();
  #lastFailure: string | undefined;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#runner = new BoundedRunner({
      clock: options.clock,
      minGap,
      resyncInterval: seconds(600),
      retry: { first: millis(500), max: seconds(30) },
      run: (_, signal) => this.#reconcile(signal),
    });
  }

  /** The cluster has changed. Cheap. */
  observe(view: ClusterView): void {
    this.#view = view;
    this.#runner.poke();
  }

  /** HAProxy ended by itself, or something else may be wrong: look again. */
  poke(): void {
    this.#runner.poke();
  }

  /** Runs until aborted; resolves when the run in flight has ended. */
  run(signal: AbortSignal): Promise<void> {
    return this.#runner.run(signal);
  }

  async #reconcile(signal: AbortSignal): Promise<RunOutcome> {
    const { services, nodes } = this.#view;
    if (services === undefined || nodes === undefined) return { status: 'done' };
    const { source, profile } = this.#options;
    const plans = planServices(services.values(), source);
    this.#tellProblems(plans);
    try {
      const failure = await this.#run(specsOfPlans(plans, [...nodes.values()], profile), signal);
      if (failure !== undefined) return this.#failed(failure);
    } catch (error) {
      signal.throwIfAborted();
      return this.#failed(messageOf(error));
    }
    return (await this.#writeStatuses(plans, signal)) ? this.#succeeded() : { status: 'retry' };
  }

  /** Returns what went wrong first. */
  async #run(specs: readonly LoadBalancerSpec[], signal: AbortSignal): Promise<string | undefined> {
    const { runtime } = this.#options;
    const outcomes = await Promise.all(specs.map((spec) => runtime.ensure(spec, signal)));
    for (const { id } of await runtime.list(clusterName, signal)) {
      if (!specs.some((spec) => spec.id.service === id.service)) await runtime.remove(id, signal);
    }
    const failed = outcomes.find((outcome) => outcome.status === 'failed');
    return failed === undefined ? undefined : `HAProxy did not take the configuration: ${failed.message}`;
  }

  /** One Service that cannot be written does not keep the others from it. Returns whether all were. */
  async #writeStatuses(plans: readonly ServicePlan[], signal: AbortSignal): Promise<boolean> {
    const { source, statusWriter, log } = this.#options;
    let areAllWritten = true;
    for (const plan of plans) {
      const { service } = plan;
      if (!isOurs(service) && !hasLeftovers(service, source)) continue;
      const desired = desiredStatus(plan);
      try {
        const { status } = await statusWriter.write(service, desired, signal);
        if (status === 'written') {
          const addresses = desired.ingress.map(({ ip }) => ip);
          log.info('status written', { service: planKey(plan), addresses, condition: desired.condition?.reason });
        }
      } catch (error) {
        signal.throwIfAborted();
        areAllWritten = false;
        this.#failed((error as ApiServerError).message); // the writer rejects with nothing else
      }
    }
    return areAllWritten;
  }

  #tellProblems(plans: readonly ServicePlan[]): void {
    const told = new Map<ServiceKey, string>();
    for (const plan of plans) {
      const text = plan.problems.map(problemText).join('; ');
      const key = planKey(plan);
      if (text !== '') told.set(key, text);
      if (text === (this.#told.get(key) ?? '')) continue;
      if (text === '') this.#options.log.info('all ports are load-balanced now', { service: key });
      else this.#options.log.warn('not everything can be load-balanced', { service: key, problem: text });
    }
    this.#told = told;
  }

  #failed(reason: string): RunOutcome {
    if (reason !== this.#lastFailure) this.#options.log.error('reconcile failed; will be tried again', { reason });
    this.#lastFailure = reason;
    return { status: 'retry' };
  }

  #succeeded(): RunOutcome {
    if (this.#lastFailure !== undefined) this.#options.log.info('reconcile works again');
    this.#lastFailure = undefined;
    return { status: 'done' };
  }
}
