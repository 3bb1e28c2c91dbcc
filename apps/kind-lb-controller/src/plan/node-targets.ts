import {
  type Endpoint,
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
import type { Draining, Target } from '../spec/load-balancer-spec.ts';
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
  /** See `drainingNodes`; nodes that are not in it do not drain. */
  readonly draining: ReadonlyMap<NodeName, Draining>;
}

/** A target per usable node. */
export function nodeTargets({ usable }: FamilyNodes, options: NodeTargetOptions): readonly Target[] {
  return usable.map(({ name, address }) => ({
    name,
    node: name,
    address,
    port: options.targetPort,
    check: healthCheckOf(address, options.checkPort),
    draining: options.draining.get(name) ?? 'no',
  }));
}

/** Where the proxy of a node says whether the node may get traffic. */
export function healthCheckOf(address: IpAddress, port: Port): Target['check'] {
  return { address, port, path: '/healthz' };
}

/**
 * How nodes drain from a Service port, by the slices of one family. While a usable node has a ready endpoint, those whose endpoints all
 * terminate are `serving`. While one has any endpoint that serves, the others are `empty`: their checks may not have failed yet.
 */
export function drainingNodes(
  { usable }: FamilyNodes,
  slices: readonly EndpointSliceRecord[],
  port: ServicePortRecord,
): ReadonlyMap<NodeName, Draining> {
  const endpoints = mergeEndpoints(slices, port, nowhere);
  const nodesWith = (has: (endpoint: Endpoint) => boolean): ReadonlySet<NodeName | undefined> =>
    new Set(endpoints.filter(has).map(({ nodeName }) => nodeName));
  const names = usable.map(({ name }) => name);
  const ready = nodesWith((one) => one.ready);
  const serving = nodesWith((one) => one.ready || (one.serving && one.terminating));
  if (!names.some((name) => serving.has(name))) return new Map();
  const isAnyReady = names.some((name) => ready.has(name));
  return new Map(
    names.map((name) => {
      if (!serving.has(name)) return [name, 'empty'];
      return [name, ready.has(name) || !isAnyReady ? 'no' : 'serving'];
    }),
  );
}

/** A load balancer is on no node. */
const nowhere = '' as NodeName;
