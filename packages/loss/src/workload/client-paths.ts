import type { Service } from '@switchyard/core/kubernetes';
import type { NamedCheck } from './check-workload.ts';

/** A way from clients to the pods of a Service. */
export interface ClientPath {
  /** In the cluster, or outside of it. */
  readonly clients: 'inside' | 'outside';
  /** Name of the Service. */
  readonly service: string;
  readonly by: 'clusterIp' | 'nodePort' | 'loadBalancer';
  readonly policy: 'Cluster' | 'Local';
  /** Health checks of the load balancer. Undefined: no load balancer chooses the node, or its checks do not follow pods. */
  readonly check: NamedCheck | undefined;
  /** Whether some clients use fewer endpoints than there are, by session affinity or by zone. */
  readonly isUneven: boolean;
}

/**
 * Paths through a Service: the cluster IP, and the load balancer or else the NodePort. Empty for a headless Service, whose clients connect to pods.
 * `check`: that of its load balancer, for `externalTrafficPolicy: Local`.
 */
export function clientPaths(service: Service, check: NamedCheck | undefined): readonly ClientPath[] {
  const { metadata, spec } = service;
  const { type = 'ClusterIP', clusterIP } = spec ?? {};
  if (clusterIP === 'None' || type === 'ExternalName') return [];
  const common = { service: metadata.name ?? '', isUneven: isUneven(service) };
  const inside: ClientPath = {
    ...common,
    clients: 'inside',
    by: 'clusterIp',
    policy: spec?.internalTrafficPolicy === 'Local' ? 'Local' : 'Cluster',
    check: undefined,
  };
  if (type === 'ClusterIP') return [inside];
  const policy = spec?.externalTrafficPolicy === 'Local' ? 'Local' : 'Cluster';
  const isBalanced = type === 'LoadBalancer';
  const outside: ClientPath = {
    ...common,
    clients: 'outside',
    by: isBalanced ? 'loadBalancer' : 'nodePort',
    policy,
    check: isBalanced && policy === 'Local' ? check : undefined,
  };
  return [inside, outside];
}

function isUneven({ metadata, spec }: Service): boolean {
  const topology = metadata.annotations?.['service.kubernetes.io/topology-mode'] ?? 'Disabled';
  return (
    spec?.sessionAffinity === 'ClientIP' || spec?.trafficDistribution !== undefined || topology.toLowerCase() === 'auto'
  );
}
