import {
  type ApiServerError,
  BoundedRunner,
  type Clock,
  type IpAddress,
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
import { renderHaproxy } from '../haproxy/render-haproxy.ts';
import type { InterfaceAddresses } from '../kernel/interface-addresses.ts';
import type { LoadBalancerRuntime } from '../runtime/load-balancer-runtime.ts';
import type { ClusterView } from '../cluster/cluster-store.ts';
import type { StatusWriter } from './write-status.ts';

/** What a controller works with. */
export interface ControllerOptions {
  readonly source: AddressSource;
  readonly profile: HealthProfile;
  readonly files: { readonly adminSocket: string; readonly serverState: string };
  readonly runtime: LoadBalancerRuntime;
  readonly statusWriter: StatusWriter;
  /** Undefined: the addresses are on an interface already. */
  readonly interfaceAddresses: InterfaceAddresses | undefined;
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
    const { source, profile, files, runtime, interfaceAddresses } = this.#options;
    const plans = planServices(services.values(), source);
    this.#tellProblems(plans);
    const configuration = renderHaproxy({
      services: plans.flatMap(({ served }) => served ?? []),
      nodes: [...nodes.values()],
      profile,
      adminSocket: files.adminSocket,
      serverStateFile: files.serverState,
    });
    const addresses = inUse(plans);
    try {
      // Make before use; remove only after nothing uses it.
      await interfaceAddresses?.add(addresses, signal);
      const result = await runtime.apply(configuration, signal);
      if (result.status === 'rejected') return this.#failed(`HAProxy did not take the configuration: ${result.reason}`);
      if (result.status === 'applied') this.#tellApplied(plans, configuration.servers.length);
      await interfaceAddresses?.removeOthers(addresses, signal);
    } catch (error) {
      signal.throwIfAborted();
      return this.#failed(messageOf(error));
    }
    return (await this.#writeStatuses(plans, signal)) ? this.#succeeded() : { status: 'retry' };
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

  #tellApplied(plans: readonly ServicePlan[], servers: number): void {
    const services = plans.filter(({ served }) => served !== undefined).length;
    this.#options.log.info('HAProxy took a new configuration', { services, servers });
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

function inUse(plans: readonly ServicePlan[]): readonly IpAddress[] {
  return plans.flatMap(({ served, grant }) => (served === undefined ? [] : grant));
}
