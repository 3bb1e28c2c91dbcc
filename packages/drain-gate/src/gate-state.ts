import {
  type ClusterEvent,
  type EndpointSliceRecord,
  type IpAddress,
  type NodeName,
  type NodeRecord,
  type ResourceKind,
  type SliceKey,
  isOffered,
} from '@switchyard/core';
import type { ServedPod } from './protocol.ts';

/** A pod in EndpointSlices. */
export interface PodEndpoints {
  /** Each address with each Service that has it as an endpoint. */
  readonly served: readonly ServedPod[];
  /**
   * The resourceVersion that a node must have applied to know this; 0 if it was so when this process listed the slices: versions of lists
   * are no versions of slices, and nodes may never see them.
   */
  readonly version: number;
  /** Whether no slice offers the pod as ready, or it ends. */
  readonly isEnding: boolean;
  readonly nodeName: NodeName | undefined;
  /** Ports at which the pod serves. */
  readonly ports: ReadonlySet<number>;
}

interface KnownSlice {
  readonly record: EndpointSliceRecord;
  readonly version: number;
}

/** Nodes and endpoints of the cluster. */
export class GateState {
  readonly #nodes = new Map<NodeName, NodeRecord>();
  readonly #slices = new Map<SliceKey, KnownSlice>();
  readonly #byAddress = new Map<IpAddress, Set<SliceKey>>();
  readonly #listed = new Set<ResourceKind>();
  #version = 0;

  /** Whether Nodes and EndpointSlices were listed once. */
  get isInSync(): boolean {
    return this.#listed.has('Node') && this.#listed.has('EndpointSlice');
  }

  get nodes(): ReadonlyMap<NodeName, NodeRecord> {
    return this.#nodes;
  }

  apply(batch: readonly ClusterEvent[]): void {
    for (const event of batch) {
      if (event.kind === 'replace') this.#listed.add(event.resource);
      if (event.resource === 'Node') this.#applyNode(event);
      if (event.resource === 'EndpointSlice') this.#applySlice(event);
    }
  }

  #applyNode(event: Extract<ClusterEvent, { readonly resource: 'Node' }>): void {
    if (event.kind === 'replace') {
      this.#nodes.clear();
      for (const node of event.items) this.#nodes.set(node.name, node);
    } else if (event.kind === 'upsert') this.#nodes.set(event.item.name, event.item);
    else this.#nodes.delete(event.name as NodeName); // the key of a record
  }

  #applySlice(event: Extract<ClusterEvent, { readonly resource: 'EndpointSlice' }>): void {
    const version = event.kind === 'replace' ? 0 : (event.resourceVersion ?? 0);
    this.#version = event.kind === 'replace' ? 0 : Math.max(this.#version, version);
    if (event.kind === 'replace') {
      this.#slices.clear();
      this.#byAddress.clear();
      for (const record of event.items) this.#set({ record, version });
    } else if (event.kind === 'upsert') {
      this.#delete(event.item.key);
      this.#set({ record: event.item, version });
    } else this.#delete(event.name as SliceKey); // the key of a record
  }

  #set(slice: KnownSlice): void {
    const { key, endpoints } = slice.record;
    this.#slices.set(key, slice);
    for (const { address } of endpoints) {
      const keys = this.#byAddress.get(address) ?? new Set();
      this.#byAddress.set(address, keys.add(key));
    }
  }

  #delete(key: SliceKey): void {
    for (const { address } of this.#slices.get(key)?.record.endpoints ?? []) {
      const keys = this.#byAddress.get(address);
      keys?.delete(key);
      if (keys?.size === 0) this.#byAddress.delete(address);
    }
    this.#slices.delete(key);
  }

  /** State of a pod with these addresses. */
  endpointsOf(addresses: readonly IpAddress[]): PodEndpoints {
    const served = new Map<string, ServedPod>();
    const ports = new Set<number>();
    let version = 0;
    let isEnding = true;
    let nodeName: NodeName | undefined;
    for (const address of addresses) {
      for (const key of this.#byAddress.get(address) ?? []) {
        const slice = this.#slices.get(key);
        const endpoint = slice?.record.endpoints.find((one) => one.address === address);
        if (slice === undefined || endpoint === undefined) continue;
        const { service } = slice.record;
        served.set(`${address} ${service}`, { address, service });
        for (const { port, protocol } of slice.record.ports) if (protocol === 'TCP') ports.add(port);
        version = Math.max(version, slice.version);
        if (isOffered(endpoint)) isEnding = false;
        nodeName ??= endpoint.nodeName;
      }
    }
    // In no slice: nodes must know what removed it.
    return {
      served: [...served.values()],
      version: served.size === 0 ? this.#version : version,
      isEnding,
      nodeName,
      ports,
    };
  }
}
