import type { Cell } from './cell.ts';

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
