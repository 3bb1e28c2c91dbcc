import {
  type ClusterEvent,
  type EndpointSliceRecord,
  type IpAddress,
  type NodeName,
  type NodeRecord,
  type Protocol,
  type ResourceKind,
  type SliceKey,
  isOffered,
} from '@switchyard/core';
import type { PodPorts, ServedPod } from './protocol.ts';

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
  readonly ports: PodPorts;
}

/** Beyond these, the one that left first is forgotten. */
const maxFormer = 10_000;

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
  /** Of pods that left the last slice, by address. */
  readonly #former = new Map<IpAddress, PodEndpoints>();
  #version = 0;

  /** Whether Nodes and EndpointSlices were listed once. */
  get isInSync(): boolean {
    return this.#listed.has('Node') && this.#listed.has('EndpointSlice');
  }

  /** The newest resourceVersion of an EndpointSlice; 0 until one changes after it was listed. */
  get version(): number {
    return this.#version;
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
      return;
    }
    const key = event.kind === 'upsert' ? event.item.key : (event.name as SliceKey); // the key of a record
    const kept = new Set(event.kind === 'upsert' ? event.item.endpoints.map(({ address }) => address) : []);
    const left = this.#addressesOf(key).filter((address) => !kept.has(address));
    const before = left.map((address) => [address, this.endpointsOf([address])] as const);
    this.#delete(key);
    if (event.kind === 'upsert') this.#set({ record: event.item, version });
    for (const [address, endpoints] of before) {
      if (!this.#byAddress.has(address)) this.#remember(address, { ...endpoints, version });
    }
  }

  #addressesOf(key: SliceKey): readonly IpAddress[] {
    return this.#slices.get(key)?.record.endpoints.map(({ address }) => address) ?? [];
  }

  #remember(address: IpAddress, endpoints: PodEndpoints): void {
    this.#former.delete(address); // the Map is in order of the removal
    this.#former.set(address, { ...endpoints, isEnding: true });
    const [oldest] = this.#former.keys();
    if (this.#former.size > maxFormer && oldest !== undefined) this.#former.delete(oldest);
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
    for (const address of this.#addressesOf(key)) {
      const keys = this.#byAddress.get(address);
      keys?.delete(key);
      if (keys?.size === 0) this.#byAddress.delete(address);
    }
    this.#slices.delete(key);
  }

  /** State of a pod with these addresses; one that left all slices has its last state, which ends. */
  endpointsOf(addresses: readonly IpAddress[]): PodEndpoints {
    const known = addresses.flatMap((address) => this.#stateOf(address) ?? []);
    return {
      served: known.flatMap(({ served }) => served),
      version: Math.max(known.length === 0 ? this.#version : 0, ...known.map(({ version }) => version)),
      isEnding: known.every(({ isEnding }) => isEnding),
      nodeName: known.find(({ nodeName }) => nodeName !== undefined)?.nodeName,
      ports: portsOf(
        known.flatMap(({ ports }) =>
          [...ports].flatMap(([protocol, numbers]) => [...numbers].map((port) => ({ protocol, port }))),
        ),
      ),
    };
  }

  #stateOf(address: IpAddress): PodEndpoints | undefined {
    const slices = [...(this.#byAddress.get(address) ?? [])].flatMap((key) => this.#slices.get(key) ?? []);
    if (slices.length === 0) return this.#former.get(address);
    const endpoints = slices.flatMap(({ record }) => record.endpoints.filter((one) => one.address === address));
    const services = new Set(slices.map(({ record }) => record.service));
    return {
      served: [...services].map((service) => ({ address, service })),
      version: Math.max(...slices.map(({ version }) => version)),
      isEnding: !endpoints.some(isOffered),
      nodeName: endpoints.find(({ nodeName }) => nodeName !== undefined)?.nodeName,
      ports: portsOf(slices.flatMap(({ record }) => record.ports)),
    };
  }
}

function portsOf(ports: readonly { readonly protocol: Protocol; readonly port: number | undefined }[]): PodPorts {
  const byProtocol = new Map<Protocol, Set<number>>();
  for (const { protocol, port } of ports) {
    if (port !== undefined) byProtocol.set(protocol, (byProtocol.get(protocol) ?? new Set()).add(port));
  }
  return byProtocol;
}
