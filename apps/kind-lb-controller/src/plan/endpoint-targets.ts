import {
  cidrContains,
  type Endpoint,
  type EndpointSliceRecord,
  hostCidr,
  type IpAddress,
  mergeEndpoints,
  type NodeName,
  type Port,
  selectEndpoints,
  type SelectionContext,
  type ServicePortRecord,
  type TrafficPolicy,
} from '@switchyard/core';
import type { RouteSpec, Target } from '../spec/load-balancer-spec.ts';
import { type FamilyNodes, healthCheckOf, type UsableNode } from './node-targets.ts';

/** Inputs for the endpoints of a Service port. */
export interface EndpointTargetOptions {
  /** Of the nodes' family. */
  readonly slices: readonly EndpointSliceRecord[];
  readonly port: ServicePortRecord;
  readonly policy: TrafficPolicy;
  /** On the endpoint's node. */
  readonly checkPort: Port;
}

/** The targets of a Service port that has no NodePort. */
export interface EndpointTargets {
  /** Sorted by name. */
  readonly targets: readonly Target[];
  /** For all targets that are not on the nodes' own network; each destination once. */
  readonly routes: readonly RouteSpec[];
  /** Ready endpoints that are left out because they name no Node. */
  readonly withoutNode: readonly IpAddress[];
}

/** A load balancer is on no node and in no zone; it follows Kubernetes since 1.26. */
const outside: SelectionContext = { here: { name: '' as NodeName, zone: '' }, terminatingFallback: 'on' };

/**
 * The endpoints themselves as targets, chosen as the proxies of the nodes would: with `Cluster` the ready ones, or those that
 * serve while they terminate if none is ready anywhere; with `Local` the same node by node. Only those on usable nodes:
 * a Node that is left out gets nothing from load balancers.
 */
export function endpointTargets({ usable }: FamilyNodes, options: EndpointTargetOptions): EndpointTargets {
  const known = mergeEndpoints(options.slices, options.port, outside.here.name);
  const nodesByName = new Map(usable.map((node) => [node.name, node]));
  const isReachable = ({ nodeName }: Endpoint): boolean => nodeName !== undefined && nodesByName.has(nodeName);
  const chosen = chooseEndpoints(known.filter(isReachable), options.policy);
  const hasReady = chosen.some(({ ready }) => ready);
  const targets = new Map<string, Target>();
  const routes = new Map<string, RouteSpec>();
  for (const endpoint of chosen) {
    const node = endpoint.nodeName === undefined ? undefined : nodesByName.get(endpoint.nodeName);
    if (node === undefined) continue;
    const name = `${node.name}:${endpoint.address}`;
    if (targets.has(name)) continue; // two ports of one address, while slices change
    targets.set(name, {
      name,
      node: node.name,
      address: endpoint.address,
      port: endpoint.port,
      check: healthCheckOf(node.address, options.checkPort),
      draining: !endpoint.ready && hasReady ? 'serving' : 'no',
    });
    const route = routeTo(endpoint.address, node);
    if (route !== undefined) routes.set(route.destination, route);
  }
  return {
    targets: [...targets.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
    routes: [...routes.values()],
    withoutNode: known.filter(({ nodeName, ready }) => nodeName === undefined && ready).map(({ address }) => address),
  };
}

function chooseEndpoints(all: readonly Endpoint[], policy: TrafficPolicy): readonly Endpoint[] {
  if (policy === 'Cluster') return selectEndpoints(all, policy, outside);
  return [...Map.groupBy(all, ({ nodeName }) => nodeName).values()].flatMap((onNode) =>
    selectEndpoints(
      onNode.map((endpoint) => ({ ...endpoint, isLocal: true })),
      policy,
      outside,
    ),
  );
}

/**
 * How pods of a node are reached: all of the node's own range at once. A plugin that does not take addresses from the Node
 * object needs a route per pod. A pod that has the node's own address needs none.
 */
function routeTo(address: IpAddress, { node, address: via }: UsableNode): RouteSpec | undefined {
  if (node.addresses.includes(address)) return undefined;
  return { destination: node.podCidrs.find((cidr) => cidrContains(cidr, address)) ?? hostCidr(address), via };
}
