import type { ClusterStateView } from '../forwarding/forwarding-table.ts';
import { wrongArgument, assertNever } from '../../base/argument.ts';
import { isEqual } from '../../base/values.ts';
import type { UsageError } from '../../base/errors.ts';
import type { Cidr } from '../ip/cidr.ts';
import type { EndpointSliceRecord, NodeRecord, ServiceCidrRecord, ServiceRecord } from '../records/records.ts';
import { apiServerService, type NodeName, type ServiceKey, type SliceKey } from '../records/keys.ts';
import { type ClusterEvent, type ResourceKind, resourceKinds } from './cluster-event.ts';

interface Marks {
  readonly services: Set<ServiceKey>;
  everything: boolean;
}

/**
 * The cluster as the source last described it: the only mutable state between the API server and the
 * forwarding table. It depends on the last version of each object, never on the order of arrival.
 * Reading a view while a batch is applied is impossible: `apply` is synchronous.
 */
export class ClusterState implements ClusterStateView {
  readonly #nodeName: NodeName;
  readonly #services = new Map<ServiceKey, ServiceRecord>();
  readonly #slices = new EndpointIndex();
  readonly #nodes = new Map<NodeName, NodeRecord>();
  readonly #serviceCidrs = new Map<string, ServiceCidrRecord>();
  readonly #missing = new Set<ResourceKind>(resourceKinds);
  #slicesVersion = 0;
  #allCidrs: readonly Cidr[] = [];

  /** `nodeName` is the Node of this agent; changes of other Nodes never make anything dirty. Throws `UsageError` without it. */
  constructor(options: { readonly nodeName: NodeName }) {
    const name: unknown = options?.nodeName;
    if (typeof name !== 'string') throw wrongArgument('ClusterState: options.nodeName', 'a text', name);
    this.#nodeName = options.nodeName;
  }

  get services(): ReadonlyMap<ServiceKey, ServiceRecord> {
    return this.#services;
  }

  get nodes(): ReadonlyMap<NodeName, NodeRecord> {
    return this.#nodes;
  }

  /** All ranges of all ServiceCIDR objects, each once, in text order. */
  get serviceCidrs(): readonly Cidr[] {
    return this.#allCidrs;
  }

  /** The resourceVersion of EndpointSlices up to which this is the state; 0 if the source names none. */
  get slicesVersion(): number {
    return this.#slicesVersion;
  }

  slicesOf(service: ServiceKey): Iterable<EndpointSliceRecord> {
    return this.#slices.slicesOf(service);
  }

  /** Whether every resource was listed in full once. Before that nothing may reach the kernel (A7). */
  get isInSync(): boolean {
    return this.#missing.size === 0;
  }

  /** Resources not yet listed in full, for status and logs. */
  get missingResources(): readonly ResourceKind[] {
    return resourceKinds.filter((kind) => this.#missing.has(kind));
  }

  /**
   * Applies a batch in order and returns what must be rebuilt. Takes what sources yield and the objects of `readManifest`.
   * Costs time in proportion to its objects. Throws `UsageError`, and applies nothing, if one of them is no event or its
   * object no record.
   */
  apply(batch: readonly ClusterEvent[]): Dirty {
    checkBatch(batch);
    const marks: Marks = { services: new Set(), everything: false };
    for (const event of batch) this.#applyEvent(event, marks);
    // Which frontends of other Services would capture connections to the API server depends on it.
    if (marks.services.has(apiServerService)) marks.everything = true;
    return marks;
  }

  #applyEvent(event: ClusterEvent, marks: Marks): void {
    if (event.kind === 'replace') this.#missing.delete(event.resource);
    switch (event.resource) {
      case 'Service':
        return applyTo(event, this.#services.keys(), {
          keyOf: (service) => service.key,
          upsert: (service) => {
            if (isEqual(this.#services.get(service.key), service)) return;
            this.#services.set(service.key, service);
            marks.services.add(service.key);
          },
          delete: (key) => {
            if (this.#services.delete(key)) marks.services.add(key);
          },
        });
      case 'EndpointSlice':
        this.#noteVersion(event);
        return applyTo(event, this.#slices.keys(), {
          keyOf: (slice) => slice.key,
          upsert: (slice) => this.#slices.upsert(slice).forEach((key) => marks.services.add(key)),
          delete: (key: SliceKey) => this.#slices.delete(key).forEach((service) => marks.services.add(service)),
        });
      case 'Node':
        return applyTo(event, this.#nodes.keys(), {
          keyOf: (node) => node.name,
          upsert: (node) => this.#setNode(node.name, node, marks),
          delete: (name) => this.#setNode(name, undefined, marks),
        });
      case 'ServiceCIDR':
        applyTo(event, this.#serviceCidrs.keys(), {
          keyOf: (record) => record.name,
          upsert: (record) => this.#serviceCidrs.set(record.name, record),
          delete: (name) => this.#serviceCidrs.delete(name),
        });
        return this.#recomputeCidrs(marks);
      default:
        return assertNever(event);
    }
  }

  /** A list may be older: etcd was restored. */
  #noteVersion({ kind, resourceVersion = 0 }: ClusterEvent): void {
    this.#slicesVersion = kind === 'replace' ? resourceVersion : Math.max(this.#slicesVersion, resourceVersion);
  }

  #setNode(name: NodeName, node: NodeRecord | undefined, marks: Marks): void {
    const previous = this.#nodes.get(name);
    if (node === undefined) this.#nodes.delete(name);
    else this.#nodes.set(name, node);
    if (name === this.#nodeName && !isSamePlace(previous, node)) marks.everything = true;
  }

  #recomputeCidrs(marks: Marks): void {
    const all = new Set<Cidr>();
    for (const record of this.#serviceCidrs.values()) for (const cidr of record.cidrs) all.add(cidr);
    const sorted = [...all].sort();
    if (isEqual(sorted, this.#allCidrs)) return;
    this.#allCidrs = sorted;
    marks.everything = true;
  }
}

/** Whether two versions of the Node of this agent agree in all fields that affect forwarding tables or their options. */
function isSamePlace(a: NodeRecord | undefined, b: NodeRecord | undefined): boolean {
  return (
    (a?.zone ?? '') === (b?.zone ?? '') && isEqual(a?.addresses, b?.addresses) && isEqual(a?.podCidrs, b?.podCidrs)
  );
}

interface Target<K extends string, T> {
  readonly keyOf: (item: T) => K;
  readonly upsert: (item: T) => unknown;
  readonly delete: (key: K) => unknown;
}

type EventOf<T> =
  | { readonly kind: 'replace'; readonly items: readonly T[] }
  | { readonly kind: 'upsert'; readonly item: T }
  | { readonly kind: 'delete'; readonly name: string };

/** Applies one event to one kind of object. A `replace` deletes only what the new list lacks. */
function applyTo<K extends string, T>(event: EventOf<T>, known: Iterable<K>, target: Target<K, T>): void {
  switch (event.kind) {
    case 'upsert':
      target.upsert(event.item);
      return;
    case 'delete':
      target.delete(event.name as K); // the event's contract: a delete names the record's key
      return;
    case 'replace': {
      const listed = new Set(event.items.map(target.keyOf));
      for (const key of known) if (!listed.has(key)) target.delete(key);
      for (const item of event.items) target.upsert(item);
      return;
    }
    default:
      assertNever(event);
  }
}

/** Fields that distinguish a record from other objects, such as those of the API; the key comes first. */
const recordFields: Readonly<Record<ResourceKind, readonly [key: string, ...lists: readonly string[]]>> = {
  Service: [
    'key',
    'clusterIps',
    'ipFamilies',
    'ports',
    'externalIps',
    'loadBalancerIngress',
    'loadBalancerSourceRanges',
  ],
  EndpointSlice: ['key', 'ports', 'endpoints'],
  Node: ['name', 'addresses', 'podCidrs'],
  ServiceCIDR: ['name', 'cidrs'],
};

/**
 * Throws `UsageError` unless `batch` is a list of events with records. Looks at the shape of each record, not at its
 * addresses: readers and sources have validated them, and a large cluster has 100,000 endpoints.
 */
function checkBatch(batch: unknown): void {
  if (!Array.isArray(batch)) throw wrongArgument('ClusterState.apply: batch', 'a list of events', batch);
  for (const event of batch as readonly unknown[]) checkEvent(event);
}

function checkEvent(value: unknown): void {
  if (!isObject(value)) throw wrongArgument('event', 'an object', value);
  const { kind, resource, item, items, name } = value;
  if (!isResource(resource)) throw wrongArgument('event.resource', resourceKinds.join(' or '), resource);
  switch (kind) {
    case 'upsert':
      return checkRecord(resource, item);
    case 'replace':
      if (!Array.isArray(items)) throw wrongArgument('event.items', 'a list of records', items);
      for (const one of items as readonly unknown[]) checkRecord(resource, one);
      return;
    case 'delete':
      if (typeof name !== 'string') throw wrongArgument('event.name', 'the key of a record', name);
      return;
    default:
      throw wrongArgument('event.kind', 'upsert, replace or delete', kind);
  }
}

function isResource(value: unknown): value is ResourceKind {
  return typeof value === 'string' && Object.hasOwn(recordFields, value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function checkRecord(resource: ResourceKind, record: unknown): void {
  if (!isObject(record)) throw wrongArgument(`a record of ${resource}`, 'an object', record);
  const [key, ...lists] = recordFields[resource];
  const wrong = (field: string, wanted: string): UsageError => {
    const hint = 'readManifest and the projections make records of API objects';
    return wrongArgument(`${field} of a record of ${resource}`, `${wanted} (${hint})`, record[field]);
  };
  if (typeof record[key] !== 'string') throw wrong(key, 'a text');
  if (resource === 'EndpointSlice' && typeof record['service'] !== 'string')
    throw wrong('service', 'the key of a Service');
  for (const field of lists) if (!Array.isArray(record[field])) throw wrong(field, 'a list');
}

/** The services to rebuild. */
export interface Dirty {
  /** Services whose object or slices changed. May name Services that do not exist (any more). */
  readonly services: ReadonlySet<ServiceKey>;
  /** Something every Service may depend on changed: the zone or addresses of this agent's Node, a ServiceCIDR, the API servers. */
  readonly everything: boolean;
}

/** Nothing must be rebuilt. */
export const nothingDirty: Dirty = { services: new Set(), everything: false };

/** Everything must be rebuilt. */
export const everythingDirty: Dirty = { services: new Set(), everything: true };

/** Whether there is nothing to rebuild. */
export function isNothingDirty(dirty: Dirty): boolean {
  return !dirty.everything && dirty.services.size === 0;
}

/** The services to rebuild after both; returns one of the two if the other adds nothing. */
export function mergeDirty(a: Dirty, b: Dirty): Dirty {
  if (isNothingDirty(b)) return a;
  if (isNothingDirty(a)) return b;
  return { services: new Set([...a.services, ...b.services]), everything: a.everything || b.everything };
}

/** The `dirty` argument of `buildTable`. Throws `UsageError` for what is no result of `ClusterState.apply`. */
export function dirtyServices(dirty: Dirty): 'all' | ReadonlySet<ServiceKey> {
  if (!(dirty?.services instanceof Set)) throw wrongArgument('dirtyServices: dirty', 'a result of apply', dirty);
  return dirty.everything ? 'all' : dirty.services;
}

const noSlices: readonly EndpointSliceRecord[] = [];

/**
 * EndpointSlices by their own key and by Service. One array per Service and nothing per endpoint:
 * at 10,000 Services the index itself must not fill the heap. Owned by `ClusterState`.
 */
export class EndpointIndex {
  readonly #slices = new Map<SliceKey, EndpointSliceRecord>();
  readonly #byService = new Map<ServiceKey, EndpointSliceRecord[]>();

  keys(): Iterable<SliceKey> {
    return this.#slices.keys();
  }

  /** Slices of a Service, all families, in no particular order. */
  slicesOf(service: ServiceKey): readonly EndpointSliceRecord[] {
    return this.#byService.get(service) ?? noSlices;
  }

  /**
   * Stores a slice. Returns the Services that must be rebuilt: none if only the trigger time differs,
   * two if the slice moved from one Service to another.
   */
  upsert(slice: EndpointSliceRecord): readonly ServiceKey[] {
    const previous = this.#slices.get(slice.key);
    if (previous !== undefined && isSameForwarding(previous, slice)) {
      if (previous.lastChangeTriggerTime !== slice.lastChangeTriggerTime) this.#replace(previous, slice);
      return [];
    }
    if (previous?.service === slice.service) {
      this.#replace(previous, slice);
      return [slice.service];
    }
    const left = this.delete(slice.key);
    this.#slices.set(slice.key, slice);
    const siblings = this.#byService.get(slice.service);
    if (siblings === undefined) this.#byService.set(slice.service, [slice]);
    else siblings.push(slice);
    return [...left, slice.service];
  }

  /** Forgets a slice. Returns the Service that must be rebuilt; none if the slice was unknown. */
  delete(key: SliceKey): readonly ServiceKey[] {
    const slice = this.#slices.get(key);
    if (slice === undefined) return [];
    this.#slices.delete(key);
    const siblings = this.#byService.get(slice.service) ?? [];
    if (siblings.length === 1) this.#byService.delete(slice.service);
    else siblings.splice(siblings.indexOf(slice), 1);
    return [slice.service];
  }

  #replace(previous: EndpointSliceRecord, slice: EndpointSliceRecord): void {
    this.#slices.set(slice.key, slice);
    const siblings = this.#byService.get(slice.service) ?? [];
    siblings[siblings.indexOf(previous)] = slice;
  }
}

/** Whether two slices lead to the same forwarding. The trigger time does not affect it (fact 47). */
function isSameForwarding(a: EndpointSliceRecord, b: EndpointSliceRecord): boolean {
  return (
    a.service === b.service &&
    a.ipFamily === b.ipFamily &&
    isEqual(a.ports, b.ports) &&
    isEqual(a.endpoints, b.endpoints)
  );
}
