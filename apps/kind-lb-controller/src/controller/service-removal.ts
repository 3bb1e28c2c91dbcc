import type { Logger, ServiceKey } from '@switchyard/core';
import type { RunOutcome } from '@switchyard/core/engine';
import { type LoadBalancerService, ourLoadBalancerClass } from '../cluster/cluster-objects.ts';
import type { ServicePlan } from '../plan/service-plan.ts';
import type { LoadBalancerRuntime } from '../runtime/runtime.ts';
import type { LoadBalancerId } from '../spec/load-balancer-spec.ts';
import type { AddressAllocator } from './address-allocator.ts';
import { beginLoadBalancer, type KnownLoadBalancers } from './known-load-balancers.ts';
import { failedStatus } from './planned-status.ts';
import { askRuntime } from './runtime-failure.ts';
import type { ServiceEvents } from './service-events.ts';
import { clearedStatus, hasOurConditions } from './service-status.ts';
import { cleanupFinalizer } from './service-writer.ts';
import type { TrackedWriter } from './tracked-writer.ts';

/** Parts that removing load balancers uses. */
export interface ServiceRemovalOptions {
  /** Name of the cluster as kind knows it. */
  readonly cluster: string;
  readonly runtime: LoadBalancerRuntime;
  readonly addresses: AddressAllocator;
  readonly loadBalancers: KnownLoadBalancers;
  readonly writer: TrackedWriter;
  readonly events: ServiceEvents;
  readonly log: Logger;
}

const done: RunOutcome = { status: 'done' };
const retry: RunOutcome = { status: 'retry' };

/**
 * Takes from Services what they are not to have, or not any more: the load balancer first, then the status, the finalizer
 * last. Can be broken off anywhere and begun again.
 */
export class ServiceRemoval {
  readonly #options: ServiceRemovalOptions;

  constructor(options: ServiceRemovalOptions) {
    this.#options = options;
  }

  /** Removes the load balancer of a Service that cannot be served at all. */
  async refuse(
    plan: ServicePlan,
    failure: { readonly reason: string; readonly message: string },
    signal: AbortSignal,
  ): Promise<RunOutcome> {
    const { events, cluster, loadBalancers, writer } = this.#options;
    const { service } = plan;
    const id = { cluster, service: service.record.key };
    if (loadBalancers.has(id.service) || service.finalizers.includes(cleanupFinalizer)) {
      if (!(await this.#remove(id, service, signal))) return retry;
      events.step(service, 'deleted');
    }
    const isNew = !service.conditions.some(
      ({ reason, message }) => reason === failure.reason && message === failure.message,
    );
    if (isNew) events.failed(service, 'ensure', failure.message);
    const written = await writer.writeStatus(
      service,
      failedStatus(plan, { ...failure, cluster, isGone: true }),
      signal,
    );
    if (written !== undefined) await writer.removeFinalizer(written, signal);
    return done;
  }

  /** Removes the load balancer and status of a Service of another class or type, or of a deleted one. */
  async retire(service: LoadBalancerService, signal: AbortSignal): Promise<RunOutcome> {
    const { addresses, events, cluster, loadBalancers, writer } = this.#options;
    const id = { cluster, service: service.record.key };
    const { loadBalancerClass: name, isBeingDeleted } = service;
    const isWritten = hasOurConditions(service);
    const mayBeOurs = isWritten || name === undefined || name === ourLoadBalancerClass;
    const hasFinalizer = service.finalizers.includes(cleanupFinalizer) && mayBeOurs;
    const isThere = loadBalancers.has(id.service);
    if (!isThere && !hasFinalizer && (isBeingDeleted || !isWritten)) return done;
    const held = addresses.addressesOf(id);
    if ((isThere || hasFinalizer) && !(await this.#remove(id, service, signal))) return retry;
    let current: LoadBalancerService | undefined = service;
    if (!isBeingDeleted) current = await writer.writeStatus(service, clearedStatus(service, held), signal);
    if (current !== undefined && hasFinalizer) await writer.removeFinalizer(current, signal);
    if (isThere || hasFinalizer) events.step(service, 'deleted');
    events.forget(service);
    return done;
  }

  /** Removes a load balancer whose Service does not exist, so that no Event is written. */
  async removeWithoutService(key: ServiceKey, signal: AbortSignal): Promise<RunOutcome> {
    const { cluster, loadBalancers, log, writer } = this.#options;
    writer.own.forget(key);
    if (!loadBalancers.has(key)) return done;
    if (!(await this.#remove({ cluster, service: key }, undefined, signal))) return retry;
    log.info('removed a load balancer without a Service', { service: key });
    return done;
  }

  /** Returns false after a failure, which it reports. */
  async #remove(id: LoadBalancerId, service: LoadBalancerService | undefined, signal: AbortSignal): Promise<boolean> {
    const { events, runtime, addresses, log, loadBalancers } = this.#options;
    const loadBalancer = beginLoadBalancer(loadBalancers, id.service);
    if (service !== undefined && loadBalancer.deletingReportedTo !== service.uid) {
      loadBalancer.deletingReportedTo = service.uid;
      events.step(service, 'deleting');
    }
    loadBalancer.isDisturbed = true;
    const failure = await askRuntime(() => runtime.remove(id, signal), signal);
    if (failure === undefined) {
      loadBalancers.delete(id.service);
      addresses.release(id);
      log.info('load balancer removed', { service: id.service });
      return true;
    }
    if (service !== undefined) events.failed(service, 'delete', failure.message);
    log.warn('cannot remove a load balancer; will be tried again', { service: id.service, reason: failure.message });
    return false;
  }
}
