import type { ServiceKey } from '@switchyard/core';
import type { ServiceSettings } from '../plan/settings.ts';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import type { RunningPlace } from './planned-status.ts';

/** A load balancer that exists, or may exist because its making was begun. One run of its Service at a time changes it. */
export interface KnownLoadBalancer {
  /** The spec applied last and where it runs; undefined when this process applied none. */
  applied: { readonly spec: LoadBalancerSpec; readonly place: RunningPlace } | undefined;
  /** It may be different from what was applied: the runtime must be asked. */
  isDisturbed: boolean;
  /** Of the last plan that ran. */
  settings: ServiceSettings | undefined;
  /** Uid of the Service that got the Event about the creation, and of the one that got the Event about the removal. */
  ensuringReportedTo: string | undefined;
  deletingReportedTo: string | undefined;
}

/** Load balancers of one cluster that exist or may exist. A cache: the runtime can list them again. */
export type KnownLoadBalancers = Map<ServiceKey, KnownLoadBalancer>;

/** The load balancer of a Service, which may exist from now on. */
export function beginLoadBalancer(known: KnownLoadBalancers, key: ServiceKey): KnownLoadBalancer {
  const events = { ensuringReportedTo: undefined, deletingReportedTo: undefined };
  const found = known.get(key) ?? { applied: undefined, isDisturbed: false, settings: undefined, ...events };
  known.set(key, found);
  return found;
}
