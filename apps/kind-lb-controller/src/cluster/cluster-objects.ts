import type { V1Condition, V1LoadBalancerIngress, V1Node, V1Service } from '@kubernetes/client-node';
import { type IpAddress, type NodeName, type ServiceRecord, tryParseIp } from '@switchyard/core';
import { recordFromNode, recordFromService } from '@switchyard/core/kubernetes';

/** The fields of a Service that its load balancer depends on. */
export interface LoadBalancerService {
  readonly record: ServiceRecord;
  readonly resourceVersion: string;
  readonly generation: number | undefined;
  /** RFC 3339 text in UTC and whole seconds, so its order is that of time. Empty if unknown. */
  readonly createdAt: string;
  /** Set means that another implementation is responsible. */
  readonly loadBalancerClass: string | undefined;
  /** `spec.loadBalancerIP`, if it is an address. */
  readonly requestedIp: IpAddress | undefined;
  readonly isBeingDeleted: boolean;
  /** As the API server has it. Empty means none. */
  readonly ingress: readonly V1LoadBalancerIngress[];
  readonly conditions: readonly V1Condition[];
}

/** The fields of a Node that load balancers depend on. */
export interface LoadBalancerNode {
  readonly name: NodeName;
  /** InternalIPs, then ExternalIPs. */
  readonly addresses: readonly IpAddress[];
  /**
   * False for a Node that no load balancer may use: labelled `node.kubernetes.io/exclude-from-external-load-balancers`
   * (KEP-1143), tainted `ToBeDeletedByClusterAutoscaler`, or being deleted. Readiness does not count: health checks
   * decide (KEP-3458).
   */
  readonly isUsable: boolean;
}

const exclusionLabel = 'node.kubernetes.io/exclude-from-external-load-balancers';

/** What we need of a Service; undefined for an object without a name or of a wrong shape. */
export function serviceFromApi(raw: V1Service): LoadBalancerService | undefined {
  const projected = recordFromService(raw);
  if (projected.status !== 'record') return undefined;
  const { metadata = {}, spec = {}, status = {} } = raw;
  return {
    record: projected.record,
    resourceVersion: metadata.resourceVersion ?? '',
    generation: metadata.generation,
    // Raw JSON: the model's type says Date, the wire has text.
    createdAt: String(metadata.creationTimestamp ?? ''),
    loadBalancerClass: spec.loadBalancerClass ?? undefined,
    requestedIp: tryParseIp(spec.loadBalancerIP ?? ''),
    isBeingDeleted: isSet(metadata.deletionTimestamp),
    ingress: status.loadBalancer?.ingress ?? [],
    conditions: status.conditions ?? [],
  };
}

/** What we need of a Node; undefined for an object without a name or of a wrong shape. */
export function nodeFromApi(raw: V1Node): LoadBalancerNode | undefined {
  const projected = recordFromNode(raw);
  if (projected.status !== 'record') return undefined;
  const { name, addresses, isEligible } = projected.record;
  return { name, addresses, isUsable: isEligible && raw.metadata?.labels?.[exclusionLabel] === undefined };
}

/** Whether we are to run this Service's load balancer. */
export function isOurs({ record, loadBalancerClass, isBeingDeleted }: LoadBalancerService): boolean {
  return record.type === 'LoadBalancer' && loadBalancerClass === undefined && !isBeingDeleted;
}

/** The API writes null for what is not set. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}
