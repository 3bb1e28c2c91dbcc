import type { Endpoint, Frontend, Protocol } from '@switchyard/core';
import type { ClassChain } from './class-chains.ts';
import { hex } from './handles.ts';
import { type FamilySuffix, nftProtocols, type ObjectName } from './names.ts';

/** `object key`: what identifies an element in the kernel, for example `frontends4 10.96.0.10 . tcp . 80`. */
export type ElementId = string;

/** One element of a map or set, in canonical text: equal elements are equal strings. */
export interface Element {
  readonly id: ElementId;
  /** What the key maps to; empty for an element of a set. */
  readonly data: string;
}

/** One write to the kernel. */
export type Change =
  | { readonly kind: 'add'; readonly id: ElementId; readonly data: string }
  | { readonly kind: 'delete'; readonly id: ElementId }
  /** The whole content of an interval set. */
  | { readonly kind: 'replace'; readonly object: ObjectName; readonly content: readonly string[] }
  /** A class that has no chain yet gets it: the chain, and the element of `lb4-classes` that leads to it. */
  | {
      readonly kind: 'class';
      readonly suffix: FamilySuffix;
      readonly handleClass: number;
      readonly chain: ClassChain;
    };

/** The change that writes an element; it is an `Element` itself. */
export type Addition = Extract<Change, { kind: 'add' }>;

/** A change of one element. */
export type ElementChange = Extract<Change, { readonly kind: 'add' | 'delete' }>;

/** Whether this change is of one element, and not of something larger. */
export function isElementChange(change: Change): change is ElementChange {
  return change.kind === 'add' || change.kind === 'delete';
}

/** The object and the key of an element id. */
export function splitElementId(id: ElementId): { readonly object: ObjectName; readonly key: string } {
  const space = id.indexOf(' ');
  // Ids are made only by the functions below, with an object name in front.
  return { object: id.slice(0, space) as ObjectName, key: id.slice(space + 1) };
}

/** Whether several services may ask for this element: it stays until the last of them lets go. */
export function isShared(id: ElementId): boolean {
  return id.startsWith('cluster-ips') || id.startsWith('hairpin');
}

/** An element id from its parts. */
export function elementId(object: ObjectName, key: string): ElementId {
  return `${object} ${key}`;
}

/** Where a frontend is looked up. */
export function frontendId(frontend: Frontend, protocol: Protocol, suffix: FamilySuffix): ElementId {
  const object = frontend.address === 'anyNodePortAddress' ? 'nodeports' : 'frontends';
  return elementId(`${object}${suffix}`, frontendKey(frontend, protocol));
}

/** The key of a frontend in its map; NodePorts have no address. */
export function frontendKey({ address, port }: Frontend, protocol: Protocol): string {
  const place = `${nftProtocols[protocol]} . ${port}`;
  return address === 'anyNodePortAddress' ? place : `${address} . ${place}`;
}

/** Where slot `slot` of an endpoint set is looked up. */
export function slotId(setId: number, slot: number, suffix: FamilySuffix): ElementId {
  return elementId(`endpoints${suffix}`, `${hex(setId)} . ${slot}`);
}

/** What a slot holds. */
export function endpointData(endpoint: Endpoint): string {
  return `${endpoint.address} . ${endpoint.port}`;
}

/** The membership that makes a connection of an endpoint to itself masqueraded. */
export function hairpinId(endpoint: Endpoint, protocol: Protocol, suffix: FamilySuffix): ElementId {
  const { address, port } = endpoint;
  return elementId(`hairpin${suffix}`, `${address} . ${address} . ${nftProtocols[protocol]} . ${port}`);
}
