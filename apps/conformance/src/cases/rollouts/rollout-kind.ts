import type { IpFamily } from '@switchyard/core';
import type { AppOptions } from '@switchyard/rollout';

/** One kind of rolling update. */
export interface RolloutKind {
  readonly workload: 'deployment' | 'daemonset';
  readonly policy: 'Cluster' | 'Local';
  readonly title: string;
  readonly why: string;
  readonly strategy: Pick<AppOptions, 'maxSurge' | 'maxUnavailable'>;
}

/**
 * The kinds that are rolled. Each has a moment at which only the old pod can answer and it is already terminating, but for the
 * DaemonSet that surges, which must not need it.
 */
export const rolloutKinds: readonly RolloutKind[] = [
  {
    workload: 'deployment',
    policy: 'Local',
    title:
      'a Deployment moves its only pod to another node, behind a load balancer that follows health checks: no request is lost',
    why: 'KEP-1669: with externalTrafficPolicy Local a node without ready endpoints forwards to those that serve while they terminate, until the load balancer has left it',
    strategy: { maxSurge: 1, maxUnavailable: 0 },
  },
  {
    workload: 'deployment',
    policy: 'Cluster',
    title: 'a Deployment without surge replaces its only pod: no request is lost while only the terminating one serves',
    why: 'KEP-1669: where no endpoint of the cluster is ready, those that serve while they terminate are used',
    strategy: { maxSurge: 0, maxUnavailable: 1 },
  },
  {
    workload: 'daemonset',
    policy: 'Local',
    title:
      'a DaemonSet without surge replaces its pods node by node, behind a load balancer that follows health checks: no request is lost',
    why: 'KEP-1669: with externalTrafficPolicy Local a node without ready endpoints forwards to those that serve while they terminate, until the load balancer has left it',
    strategy: { maxSurge: 0, maxUnavailable: 1 },
  },
  {
    workload: 'daemonset',
    policy: 'Cluster',
    title: 'a DaemonSet with surge replaces its pods, each when its successor is ready: no request is lost',
    why: 'KEP-1591: maxSurge of a DaemonSet starts the new pod of a node before the old one goes, so a ready endpoint is always there',
    strategy: { maxSurge: 1, maxUnavailable: 0 },
  },
];

/** `rollout/deployment/Local/ipv4`. */
export function rolloutId({ workload, policy }: RolloutKind, family: IpFamily): string {
  return `rollout/${workload}/${policy}/${family.toLowerCase()}`;
}
