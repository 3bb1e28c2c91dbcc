import type { DataplaneName } from '@switchyard/scenarios';
import { type BackendName, backendNames } from '@switchyard/conformance';

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

export const cellFamilies = ['ipv4', 'ipv6', 'dual'] as const;

/** Server of Services of type LoadBalancer: our controller for kind, or none. */
export type CellLoadBalancer = (typeof cellLoadBalancers)[number];

export const cellLoadBalancers = ['switchyard', 'none'] as const;

/** A run of the conformance suite in a lab, which needs no cluster. */
export interface LabCell {
  /** `lab-nftables-dual`: the part after `e2e:` of its nx target. */
  readonly id: string;
  readonly backend: BackendName;
  readonly ipFamily: CellFamily;
}

export const labCells: readonly LabCell[] = backendNames.flatMap((backend) =>
  cellFamilies.map((ipFamily) => ({ id: `lab-${backend}-${ipFamily}`, backend, ipFamily })),
);

/** Prefix of the names of e2e clusters, which are removed if no process owns them. */
export const clusterPrefix = 'swy-e2e-';

/** Label of the containers that a cell starts beside kind's; its value is the cluster's name. */
export const clusterLabel = 'dev.switchyard.e2e.cluster';

/** Label that our LoadBalancer controller puts on the containers of a cluster's Services; its value is the cluster's name. */
export const loadBalancerLabel = 'dev.switchyard.lb.cluster';

/** The name of a cell's cluster: `swy-e2e-nftables-dual-1-36-switchyard`. Nodes have it in their host names, which dots would cut. */
export function clusterName(cell: Cell): string {
  return `${clusterPrefix}${cell.id.replaceAll('.', '-')}`;
}

/** kind's names of the nodes of a cluster that has a control plane and two workers. */
export function nodeNames(cluster: string): readonly string[] {
  return [`${cluster}-control-plane`, `${cluster}-worker`, `${cluster}-worker2`];
}
