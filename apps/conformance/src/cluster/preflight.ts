import { ConfigError } from '@switchyard/core';
import { apiResources, type Namespace, type ObjectClient, type Service } from '@switchyard/core/kubernetes';
import { chooseNodes, type NodePair } from './choose-nodes.ts';
import { type ClusterEnvironmentOptions, runLabel } from './cluster-options.ts';

/** Facts about a cluster before the run writes to it. */
export interface Preflight {
  readonly nodes: NodePair;
  /** Namespaces of runs in progress, or of runs that did not clean up. */
  readonly otherRuns: readonly string[];
}

/** Number of names in a message; further ones are only counted. */
const mostNames = 10;

/** Checks whether the cluster can be used. Rejects with `ConfigError` that says why not and what to do. */
export async function preflight(
  api: ObjectClient,
  options: Pick<ClusterEnvironmentOptions, 'nodes' | 'mayHaveOtherLoadBalancers'>,
  signal: AbortSignal,
): Promise<Preflight> {
  const [nodes, services, namespaces] = await Promise.all([
    api.list(apiResources.nodes, {}, signal),
    api.list(apiResources.services, {}, signal),
    runNamespaces(api, signal),
  ]);
  const otherRuns = namespaces.map(({ metadata }) => metadata.name ?? '');
  if (options.mayHaveOtherLoadBalancers !== true) refuseOtherLoadBalancers(services.items, otherRuns);
  return { nodes: chooseNodes(nodes.items, options.nodes), otherRuns };
}

/** Namespaces that runs have made. */
export async function runNamespaces(api: ObjectClient, signal: AbortSignal): Promise<readonly Namespace[]> {
  return (await api.list(apiResources.namespaces, { labelSelector: runLabel }, signal)).items;
}

/** Throws `ConfigError` if the cluster has Services of type LoadBalancer that are not of conformance runs. */
export function refuseOtherLoadBalancers(services: readonly Service[], ours: readonly string[]): void {
  const others = services
    .filter(({ metadata, spec }) => spec?.type === 'LoadBalancer' && !ours.includes(metadata.namespace ?? ''))
    .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  if (others.length === 0) return;
  const more = others.length > mostNames ? ` and ${others.length - mostNames} more` : '';
  throw new ConfigError(
    'cluster.loadBalancers',
    `this cluster has Services of type LoadBalancer that may be in use: ${others.slice(0, mostNames).join(', ')}${more}; ` +
      'run on a cluster without them, or say --allow-other-load-balancers (they are not touched)',
  );
}
