import type { DataplaneName } from '@switchyard/scenarios';

/** One point of the e2e matrix: a kind cluster to be built. */
export interface Cell {
  /** `nftables-dual-1.36-switchyard`: the part after `e2e:` of its nx target. */
  readonly id: string;
  readonly backend: DataplaneName;
  /** kind's `networking.ipFamily`. */
  readonly ipFamily: CellFamily;
  /** Version of Kubernetes, as `1.36`. */
  readonly kubernetes: string;
  /** Server of Services of type LoadBalancer. */
  readonly loadBalancer: CellLoadBalancer;
}

/** IP families of a cluster, as kind names them. */
export type CellFamily = (typeof cellFamilies)[number];

/** All of `CellFamily`. */
export const cellFamilies = ['ipv4', 'ipv6', 'dual'] as const;

/** Server of Services of type LoadBalancer: our controller for kind, or none. */
export type CellLoadBalancer = (typeof cellLoadBalancers)[number];

/** All of `CellLoadBalancer`. */
export const cellLoadBalancers = ['switchyard', 'none'] as const;
