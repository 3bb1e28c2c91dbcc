import type { EndpointSliceRecord, NodeRecord, ServiceRecord, ServiceCidrRecord } from '../records/records.ts';

/** The record type of each watched resource, by API kind. */
export interface Records {
  readonly Service: ServiceRecord;
  readonly EndpointSlice: EndpointSliceRecord;
  readonly Node: NodeRecord;
  readonly ServiceCIDR: ServiceCidrRecord;
}

/** API kind of a watched resource. */
export type ResourceKind = keyof Records;

/** All watched resources. A source is in sync after the first `replace` of each. */
export const resourceKinds: readonly ResourceKind[] = ['Service', 'EndpointSlice', 'Node', 'ServiceCIDR'];

/** Version of an event, where the source has one. */
export interface EventVersion {
  /** `metadata.resourceVersion` of the object after the change, or of the list. Grows with each change of a resource (KEP-5504). */
  readonly resourceVersion?: number | undefined;
}

/**
 * One change of the records `R` of a resource. `replace` carries all objects of it (a relist); state is
 * never emptied first. `name` of a delete is the record's key (`namespace/name`, or the bare name of
 * a cluster-scoped object); deleting an unknown object is no error.
 */
export type ResourceEvent<K extends string, R> = EventVersion &
  (
    | { readonly kind: 'replace'; readonly resource: K; readonly items: readonly R[] }
    | { readonly kind: 'upsert'; readonly resource: K; readonly item: R }
    | { readonly kind: 'delete'; readonly resource: K; readonly name: string }
  );

/** One change of cluster state. */
export type ClusterEvent = { [K in ResourceKind]: ResourceEvent<K, Records[K]> }[ResourceKind];

/** Source of cluster state: an API server, a folder of manifests, a test. */
export interface ClusterStateSource {
  /**
   * Batches of events that belong together, in order. Ends when `signal` aborts; throws only if the
   * source can never recover (a wrong kubeconfig), never for an outage.
   */
  batches(signal: AbortSignal): AsyncIterable<readonly ClusterEvent[]>;
}
