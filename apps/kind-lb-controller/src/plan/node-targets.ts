import {
  type EndpointSliceRecord,
  type IpAddress,
  type IpFamily,
  ipFamilyOf,
  mergeEndpoints,
  type NodeName,
  type Port,
  type ServicePortRecord,
} from '@switchyard/core';
import type { LoadBalancerNode } from '../cluster/cluster-objects.ts';
import type { Target } from '../spec/load-balancer-spec.ts';
import type { ExcludedNode } from './problem.ts';

/** A Node that may be used in one family. */
export interface UsableNode {
  readonly name: NodeName;
  /** Its first address of the family. */
  readonly address: IpAddress;
  readonly node: LoadBalancerNode;
}

/** The Nodes of one family, sorted by name. */
export interface FamilyNodes {
  readonly ipFamily: IpFamily;
  readonly usable: readonly UsableNode[];
  readonly excluded: readonly ExcludedNode[];
}

/** Which Nodes load balancers may use in a family. Readiness does not count: health checks decide (KEP-3458). */
export function familyNodes(nodes: Iterable<LoadBalancerNode>, ipFamily: IpFamily): FamilyNodes {
  const usable: UsableNode[] = [];
  const excluded: ExcludedNode[] = [];
  for (const node of [...nodes].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const { name, exclusion } = node;
    const address = node.addresses.find((ip) => ipFamilyOf(ip) === ipFamily);
    if (exclusion !== undefined) excluded.push({ node: name, reason: exclusion });
    else if (address === undefined) excluded.push({ node: name, reason: 'noAddress', ipFamily });
    else usable.push({ name, address, node });
  }
  return { ipFamily, usable, excluded };
}

/** Ports for traffic and health checks on the nodes of a Service port. */
export interface NodeTargetOptions {
  /** On the node: the nodePort, or the Service's own port where packets arrive unchanged. */
  readonly targetPort: Port;
  readonly checkPort: Port;
  /** See `drainingNodes`. */
  readonly draining: ReadonlySet<NodeName>;
}

/** A target per usable node. */
export function nodeTargets({ usable }: FamilyNodes, options: NodeTargetOptions): readonly Target[] {
  return usable.map(({ name, address }) => ({
    name,
    node: name,
    address,
    port: options.targetPort,
    check: healthCheckOf(address, options.checkPort),
    isDraining: options.draining.has(name),
  }));
}

/** Where the proxy of a node says whether the node may get traffic. */
export function healthCheckOf(address: IpAddress, port: Port): Target['check'] {
  return { address, port, path: '/healthz' };
}

/**
 * The nodes that have no ready endpoint of a Service port, by the slices of one family, while another one has: those that terminate go on
 * serving there until the others have been found healthy. Empty if no usable node has a ready one. A node whose last
 * endpoint is gone altogether is among them, for its check may not have failed yet.
 */
export function drainingNodes(
  { usable }: FamilyNodes,
  slices: readonly EndpointSliceRecord[],
  port: ServicePortRecord,
): ReadonlySet<NodeName> {
  const ready = new Set<NodeName>();
  for (const { ready: isReady, nodeName } of mergeEndpoints(slices, port, nowhere)) {
    if (isReady && nodeName !== undefined) ready.add(nodeName);
  }
  const names = usable.map(({ name }) => name);
  return new Set(names.some((name) => ready.has(name)) ? names.filter((name) => !ready.has(name)) : []);
}

/** A load balancer is on no node. */
const nowhere = '' as NodeName;
