import { assertNever, type IpAddress, type IpFamily, type NodeName, type Port, type Protocol } from '@switchyard/core';
import { exclusionLabel, type NodeExclusion } from '../cluster/cluster-objects.ts';
import type { LoadBalancerId } from '../spec/load-balancer-spec.ts';
import type { AnnotationProblem } from './annotations.ts';
import type { MissingFamily, PortConflict, RefusedIp } from './ip-pool.ts';

/** A Node that a load balancer leaves out. */
export type ExcludedNode =
  | { readonly node: NodeName; readonly reason: NodeExclusion }
  /** It has no address of a family that the load balancer has. */
  | { readonly node: NodeName; readonly reason: 'noAddress'; readonly ipFamily: IpFamily };

/** Something that is not as the Service's owner wants it. */
export type Problem =
  /** Nothing is changed until it is corrected. */
  | AnnotationProblem
  /** `externalTrafficPolicy: Local` without a `healthCheckNodePort`: no health check can find the nodes with endpoints. */
  | { readonly kind: 'noHealthCheckNodePort' }
  /** One of the Service's families is not served. */
  | ({ readonly kind: 'noAddress' } & MissingFamily)
  /** It has other addresses than `spec.loadBalancerIP`, or none. */
  | {
      readonly kind: 'requestedIp';
      readonly requested: string;
      readonly why: RefusedIp | { readonly reason: 'malformed' };
    }
  /** A port that is not served on one of the addresses. */
  | ({ readonly kind: 'portConflict' } & PortConflict)
  /** Every connection of the family is refused, for no node is there to take it. */
  | { readonly kind: 'noNodes'; readonly ipFamily: IpFamily; readonly excluded: readonly ExcludedNode[] }
  /** A port without a nodePort has no endpoint to go to. */
  | { readonly kind: 'noEndpoints'; readonly port: Port; readonly protocol: Protocol; readonly ipFamily: IpFamily }
  /** Endpoints of a port without a nodePort that cannot be routed to, because their slices name no node. */
  | {
      readonly kind: 'endpointsWithoutNode';
      readonly port: Port;
      readonly protocol: Protocol;
      readonly addresses: readonly IpAddress[];
    }
  /** Ports that are not published on this machine: all of them (`transparent`), or those of SCTP. The load balancer's addresses serve them. */
  | { readonly kind: 'notPublished'; readonly why: 'transparent' | 'sctp' };

/** Describes a problem for the operator in one sentence without a full stop. Services of clusters other than `cluster` are named with theirs. */
export function problemText(problem: Problem, cluster?: string): string {
  switch (problem.kind) {
    case 'annotation':
      return `annotation ${problem.name}: ${JSON.stringify(problem.value)} cannot be used: ${problem.fault}; nothing is changed until it is corrected`;
    case 'noHealthCheckNodePort':
      return 'externalTrafficPolicy is Local and there is no healthCheckNodePort, so no node can be checked';
    case 'noAddress':
      return `there is no ${problem.ipFamily} address to give: ${missingText(problem)}`;
    case 'requestedIp':
      return `loadBalancerIP ${problem.requested} is not given: ${refusalText(problem.why, cluster)}`;
    case 'portConflict':
      return `port ${problem.port}/${problem.protocol} is not load-balanced on ${problem.address}: ${holderText(problem.heldBy, cluster)} has it; use another port`;
    case 'noNodes':
      return `there is no node to send ${problem.ipFamily} connections to${problem.excluded.length === 0 ? '' : `: left out are ${excludedNodesText(problem.excluded)}`}`;
    case 'noEndpoints':
      return `port ${problem.port}/${problem.protocol} has no usable ${problem.ipFamily} endpoint`;
    case 'endpointsWithoutNode':
      return `port ${problem.port}/${problem.protocol} has no nodePort, and its endpoints ${problem.addresses.join(', ')} name no node through which they could be reached; set allocateLoadBalancerNodePorts to true`;
    case 'notPublished':
      return problem.why === 'sctp'
        ? 'SCTP ports are not published on this machine: container engines cannot'
        : 'no port is published on this machine: the path is transparent, and what arrives by a published port cannot be answered past the load balancer; use lb.switchyard.dev/path: proxy for that';
    default:
      return assertNever(problem);
  }
}

/** The Service's own port that a problem is about; undefined if it is about more than one. */
export function problemPort(problem: Problem): { readonly port: Port; readonly protocol: Protocol } | undefined {
  return 'port' in problem ? problem : undefined;
}

/** Which Node is left out and why, for example `node1 (being deleted)`. */
export function excludedNodeText(excluded: ExcludedNode): string {
  return `${excluded.node} (${exclusionText(excluded)})`;
}

/** Of large clusters not every Node is named: an Event has room for 1024 characters. */
const mostNamed = 8;

/** Describes the excluded Nodes, the reasons, and a remedy for a label: kubeadm labels control planes, which may be the only nodes. Empty for none. */
export function excludedNodesText(excluded: readonly ExcludedNode[]): string {
  const named = excluded.slice(0, mostNamed).map(excludedNodeText);
  const others = excluded.length > mostNamed ? ` and ${excluded.length - mostNamed} others` : '';
  const labelled = excluded.find(({ reason }) => reason === 'label');
  const advice =
    labelled === undefined
      ? ''
      : `; kubeadm puts that label on control planes, and "kubectl label node ${labelled.node} ${exclusionLabel}-" takes it off`;
  return `${named.join(', ')}${others}${advice}`;
}

function exclusionText(excluded: ExcludedNode): string {
  switch (excluded.reason) {
    case 'beingDeleted':
      return 'being deleted';
    case 'taint':
      return 'taint ToBeDeletedByClusterAutoscaler';
    case 'label':
      return `label ${exclusionLabel}`;
    case 'noAddress':
      return `no ${excluded.ipFamily} address`;
    default:
      return assertNever(excluded);
  }
}

function missingText({ reason, ipFamily }: MissingFamily): string {
  return reason === 'notOffered'
    ? `load balancers here have no ${ipFamily} addresses`
    : 'all are taken; delete a Service, or give a larger --pool';
}

function refusalText(why: RefusedIp | { readonly reason: 'malformed' }, cluster: string | undefined): string {
  switch (why.reason) {
    case 'malformed':
      return 'it is not an IP address';
    case 'outside':
      return `addresses of load balancers are from ${why.offered.join(' and ')}`;
    case 'notForHosts':
      return 'it is the first address of its network, or the broadcast address';
    case 'reserved':
      return 'another host on the network has it';
    case 'heldBy':
      return `${holderText(why.holder, cluster)} has it`;
    case 'otherFamily':
      return 'the Service has no address of its family; see its ipFamilies';
    default:
      return assertNever(why);
  }
}

function holderText({ cluster, service }: LoadBalancerId, own: string | undefined): string {
  return cluster === own ? `Service ${service}` : `Service ${service} of cluster ${cluster}`;
}
