import type { NodeName, ServiceKey } from '@switchyard/core';
import type { LoadBalancerNode, LoadBalancerService } from '../cluster/cluster-objects.ts';
import type { ServiceSlices } from '../cluster/cluster-store.ts';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import type { AddressGrant } from './ip-pool.ts';
import type { ExcludedNode, Problem } from './problem.ts';
import type { PlanDefaults, ServiceSettings } from './settings.ts';

/** Inputs of plans besides the Service. */
export interface PlanContext {
  /** Name of the cluster as kind knows it. */
  readonly cluster: string;
  readonly nodes: ReadonlyMap<NodeName, LoadBalancerNode>;
  readonly slices: ServiceSlices;
  /** From the address book; a Service without a grant belongs to another controller. */
  readonly grantOf: (service: ServiceKey) => AddressGrant | undefined;
  readonly defaults: PlanDefaults;
  /** `settings` of the last plan that ran, for a Service whose annotations are wrong now. Undefined: none did. */
  readonly lastSettingsOf: (service: ServiceKey) => ServiceSettings | undefined;
}

/** Wanted state of one Service's load balancer. */
export type PlannedState =
  /** A load balancer with this spec, perhaps with problems. */
  | { readonly status: 'run'; readonly spec: LoadBalancerSpec; readonly settings: ServiceSettings }
  /** Unknown: an existing load balancer stays unchanged, and none is made. Problems say why. */
  | { readonly status: 'keep' }
  /** No load balancer: the Service belongs to another controller, is being deleted, or cannot be served at all (problems say why). */
  | { readonly status: 'remove' };

/** The plan of one Service. */
export interface ServicePlan {
  readonly service: LoadBalancerService;
  readonly planned: PlannedState;
  /** Problems for the Service's owner: annotations, addresses, then ports in order. Empty for a Service of another controller. */
  readonly problems: readonly Problem[];
  /** Sorted by name. Empty for a Service of another controller. */
  readonly excludedNodes: readonly ExcludedNode[];
}
