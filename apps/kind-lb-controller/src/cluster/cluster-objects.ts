import type { V1Condition, V1EndpointSlice, V1LoadBalancerIngress, V1Node, V1Service } from '@kubernetes/client-node';
import type { Cidr, EndpointSliceRecord, IpAddress, NodeName, ServiceRecord } from '@switchyard/core';
import {
  newProjectionContext,
  type Projected,
  recordFromEndpointSlice,
  recordFromNode,
  recordFromService,
} from '@switchyard/core/kubernetes';

/** Prefix of all annotations of this controller. */
export const annotationPrefix = 'lb.switchyard.dev/';

/** The `spec.loadBalancerClass` of this controller, which also serves Services without a class. */
export const ourLoadBalancerClass = 'switchyard.dev/lb';

/** The fields of a Service that its load balancer depends on. */
export interface LoadBalancerService {
  readonly record: ServiceRecord;
  /** Another one means that the Service was deleted and made again under its name. Empty if unknown. */
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number | undefined;
  /** RFC 3339 text in UTC and whole seconds, so its order is that of time. Empty if unknown. */
  readonly createdAt: string;
  /** Undefined: not set. See `isOurs`. */
  readonly loadBalancerClass: string | undefined;
  /** `spec.loadBalancerIP` as written, which need not be an address; undefined when not set. */
  readonly requestedIp: string | undefined;
  /** Those that begin with `annotationPrefix`, with their full names. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly finalizers: readonly string[];
  /** Whether it is being deleted and waits for its finalizers, perhaps this controller's. */
  readonly isBeingDeleted: boolean;
  /** As the API server has it. Empty means none. */
  readonly ingress: readonly V1LoadBalancerIngress[];
  readonly conditions: readonly V1Condition[];
}

/** Why no load balancer may use a Node. Readiness is no reason: health checks decide (KEP-3458). */
export type NodeExclusion =
  /** It is being deleted. */
  | 'beingDeleted'
  /** Tainted `ToBeDeletedByClusterAutoscaler`. */
  | 'taint'
  /** Labelled `node.kubernetes.io/exclude-from-external-load-balancers` (KEP-1143). */
  | 'label';

/** The fields of a Node that load balancers depend on. A heartbeat changes none of them. */
export interface LoadBalancerNode {
  readonly name: NodeName;
  /** InternalIPs, then ExternalIPs. */
  readonly addresses: readonly IpAddress[];
  /** Where its pods' addresses come from; empty where the network plugin does not use the Node object. */
  readonly podCidrs: readonly Cidr[];
  /** Undefined: it may be used. Of several reasons, the first in the order of `NodeExclusion`. */
  readonly exclusion: NodeExclusion | undefined;
}

/** Label by which a Node asks to be left out. */
export const exclusionLabel = 'node.kubernetes.io/exclude-from-external-load-balancers';

/** Projects a Service; undefined for an object without a name or of a wrong shape. */
export function serviceFromApi(raw: V1Service): LoadBalancerService | undefined {
  const projected = recordFromService(raw);
  if (projected.status !== 'record') return undefined;
  const { metadata = {}, spec = {}, status = {} } = raw;
  return {
    record: projected.record,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    generation: metadata.generation,
    // Raw JSON: the model's type says Date, the wire has text.
    createdAt: String(metadata.creationTimestamp ?? ''),
    loadBalancerClass: spec.loadBalancerClass ?? undefined,
    requestedIp: (spec.loadBalancerIP ?? '') === '' ? undefined : spec.loadBalancerIP,
    annotations: ourAnnotations(metadata.annotations),
    finalizers: metadata.finalizers ?? [],
    isBeingDeleted: isSet(metadata.deletionTimestamp),
    ingress: status.loadBalancer?.ingress ?? [],
    conditions: status.conditions ?? [],
  };
}

/** Projects a Node; undefined for an object without a name or of a wrong shape. */
export function nodeFromApi(raw: V1Node): LoadBalancerNode | undefined {
  const projected = recordFromNode(raw);
  if (projected.status !== 'record') return undefined;
  const { name, addresses, podCidrs } = projected.record;
  return { name, addresses, podCidrs, exclusion: exclusionOf(raw, projected.record.isEligible) };
}

/** A projection of EndpointSlices, for one watch: equal texts and lists are kept once. */
export function newSliceProjection(): (raw: V1EndpointSlice) => Projected<EndpointSliceRecord> {
  const context = newProjectionContext();
  return (raw) => {
    const projected = recordFromEndpointSlice(raw, context);
    return projected.status === 'record' ? { ...projected, record: withoutHints(projected.record) } : projected;
  };
}

/** Whether this controller runs the Service's load balancer. */
export function isOurs({ record, loadBalancerClass, isBeingDeleted }: LoadBalancerService): boolean {
  const isOurClass = loadBalancerClass === undefined || loadBalancerClass === ourLoadBalancerClass;
  return record.type === 'LoadBalancer' && isOurClass && !isBeingDeleted;
}

/** Whether a Service is, or may once have been, a matter of load balancers: addresses, finalizers and conditions stay behind. */
export function concernsLoadBalancers({ record, ingress, finalizers, conditions }: LoadBalancerService): boolean {
  return record.type === 'LoadBalancer' || ingress.length > 0 || finalizers.length > 0 || conditions.length > 0;
}

function exclusionOf({ metadata }: V1Node, isEligible: boolean): NodeExclusion | undefined {
  if (isSet(metadata?.deletionTimestamp)) return 'beingDeleted';
  if (!isEligible) return 'taint';
  return metadata?.labels?.[exclusionLabel] === undefined ? undefined : 'label';
}

function ourAnnotations(all: Readonly<Record<string, string>> | undefined): Readonly<Record<string, string>> {
  const ours = Object.entries(all ?? {}).filter(([name]) => name.startsWith(annotationPrefix));
  return Object.fromEntries(ours);
}

const noHints: readonly string[] = [];

/** Drops topology hints: a load balancer is in no zone and on no node. */
function withoutHints(slice: EndpointSliceRecord): EndpointSliceRecord {
  return {
    ...slice,
    lastChangeTriggerTime: undefined,
    endpoints: slice.endpoints.map((endpoint) => ({ ...endpoint, zoneHints: noHints, nodeHints: noHints })),
  };
}

/** The API writes null for what is not set. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}
