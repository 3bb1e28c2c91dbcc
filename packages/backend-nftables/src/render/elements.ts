import {
  type Decision,
  type Endpoint,
  type Frontend,
  InvariantError,
  type Protocol,
  type SourceClass,
  type TrafficPolicy,
} from '@switchyard/core';
import type { ClassChain } from './class-chains.ts';
import { type FamilySuffix, type ObjectName, nftProtocols } from './names.ts';

/** `object key`: what identifies an element in the kernel, for example `frontends4 10.96.0.10 . tcp . 80`. */
export type ElementId = string;

/** One element of a map or set, in canonical text: equal elements are equal strings. */
export interface Element {
  readonly id: ElementId;
  /** Data of the key; empty for an element of a set. */
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

export type ElementChange = Extract<Change, { readonly kind: 'add' | 'delete' }>;

/** Whether this change is of one element, and not of something larger. */
export function isElementChange(change: Change): change is ElementChange {
  return change.kind === 'add' || change.kind === 'delete';
}

export function splitElementId(id: ElementId): { readonly object: ObjectName; readonly key: string } {
  const space = id.indexOf(' ');
  // Ids are made only by the functions below, with an object name in front.
  return { object: id.slice(0, space) as ObjectName, key: id.slice(space + 1) };
}

/** Whether several services may have this element: it stays until the last of them is removed. */
export function isShared(id: ElementId): boolean {
  return id.startsWith('cluster-ips') || id.startsWith('hairpin');
}

export function elementId(object: ObjectName, key: string): ElementId {
  return `${object} ${key}`;
}

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

/** Data of a slot. */
export function endpointData(endpoint: Endpoint): string {
  return `${endpoint.address} . ${endpoint.port}`;
}

/** The membership that makes a connection of an endpoint to itself masqueraded. */
export function hairpinId(endpoint: Endpoint, protocol: Protocol, suffix: FamilySuffix): ElementId {
  const { address, port } = endpoint;
  return elementId(`hairpin${suffix}`, `${address} . ${address} . ${nftProtocols[protocol]} . ${port}`);
}

/**
 * A handle is 32 bits: class (12) | id (20), kept in the packet's `meta priority` while it is looked up.
 *
 * - In `frontends` and `nodeports` the class is what to do per source class (three codes of three bits), and one bit
 *   that says whether sources are restricted; the id is the service's.
 * - In `to-cluster` and `to-local` the class is the load-balancing class and the id is the endpoint set's.
 *   Classes 0x800 to 0xfff are reserved for session affinity.
 */
export const idBits = 20;
/** Selects the id of a handle. */
export const idMask = 0x000fffff;
/** Selects the class of a handle. */
export const classMask = 0xfff00000;

/** Highest service id. Endpoint set ids are twice as many: one per policy. */
export const maxServiceId: number = (1 << (idBits - 1)) - 1;

/** A decision as three bits: 0 says "as for the next source class", 4 alone is drop, 4 more is masquerade. */
const codes = { cluster: 1, local: 2, reject: 3, drop: 4, masquerade: 4 } as const;
const policyCodes: Readonly<Record<TrafficPolicy, number>> = { Cluster: codes.cluster, Local: codes.local };

/** How far the code of a source class is shifted inside the class; rules ask in this order. */
export const codeShifts: Readonly<Record<SourceClass, number>> = { pod: 6, node: 3, outside: 0 };

export function codeOf(decision: Decision): number {
  if (decision.kind !== 'forward') return codes[decision.kind];
  return policyCodes[decision.to] + (decision.masquerade ? codes.masquerade : 0);
}

/** Where the codes lead, for the rules: each code without its masquerade bit; `?` is the family. Drop is what is left over. */
export const codeTargets: readonly { readonly code: number; readonly chain: string }[] = [
  { code: codes.cluster, chain: 'set-cluster?' },
  { code: codes.local, chain: 'set-local?' },
  { code: codes.reject, chain: 'no-endpoints?' },
];

/** The masquerade bit within a code. */
export const masqueradeCode: number = codes.masquerade;

/** Decisions as a handle class, equal ones merged: only `outside`: for all; `pod` and `outside`: node as outside. */
export function decisionClass(decisions: Readonly<Record<SourceClass, Decision>>): number {
  const pod = codeOf(decisions.pod);
  const node = codeOf(decisions.node);
  const outside = codeOf(decisions.outside);
  if (pod === node && node === outside) return outside;
  if (node === outside) return (pod << codeShifts.pod) | outside;
  return (pod << codeShifts.pod) | (node << codeShifts.node) | outside;
}

/** Bit of a frontend's class: only sources in `fw-allow` may use it. */
export const restrictedClass = 0x200;

/** The class of a frontend: its decisions, and whether its sources are restricted. */
export function frontendClass({ decisions, allowedSources }: Pick<Frontend, 'decisions' | 'allowedSources'>): number {
  return decisionClass(decisions) | (allowedSources === 'any' ? 0 : restrictedClass);
}

/** Whether a frontend's class says that its sources are restricted. */
export function isRestricted(handleClass: number): boolean {
  return (handleClass & restrictedClass) !== 0;
}

/** The decisions of a frontend's class; undefined for an unknown class. */
export function decisionsOf(frontendClass: number): Readonly<Record<SourceClass, Decision>> | undefined {
  const handleClass = frontendClass & ~restrictedClass;
  if (handleClass > 0x1ff) return undefined;
  const at = (source: SourceClass): number => (handleClass >> codeShifts[source]) & 7;
  const outside = decisionOf(at('outside'));
  const node = at('node') === 0 ? outside : decisionOf(at('node'));
  const pod = at('pod') === 0 ? node : decisionOf(at('pod'));
  return outside === undefined || node === undefined || pod === undefined ? undefined : { pod, node, outside };
}

function decisionOf(code: number): Decision | undefined {
  if (code === codes.reject) return { kind: 'reject' };
  if (code === codes.drop) return { kind: 'drop' };
  const policy = (['Cluster', 'Local'] as const).find((one) => policyCodes[one] === (code & ~codes.masquerade));
  return policy && { kind: 'forward', to: policy, masquerade: (code & codes.masquerade) !== 0 };
}

export function packHandle(handleClass: number, id: number): number {
  if (id < 0 || id > idMask || handleClass < 0 || handleClass > 0xfff) {
    throw new InvariantError(`a handle cannot hold class ${handleClass} and id ${id}`);
  }
  return ((handleClass << idBits) | id) >>> 0;
}

export function handleClass(handle: number): number {
  return handle >>> idBits;
}

export function handleId(handle: number): number {
  return handle & idMask;
}

/** The endpoint set of a service under one policy. */
export function endpointSetId(serviceId: number, policy: TrafficPolicy): number {
  return serviceId * 2 + policyCodes[policy] - 1;
}

/** A number as elements spell it. */
export function hex(value: number): string {
  return `0x${value.toString(16)}`;
}

/** Ids in use. A freed one is reused last: a packet may have read its handle just before a commit. */
export class IdPool {
  readonly #used = new Set<number>();
  #next = 1;

  /** A free id, or undefined when all are taken. */
  allocate(): number | undefined {
    if (this.#used.size >= maxServiceId) return undefined;
    while (this.#used.has(this.#next)) this.#advance();
    const id = this.#next;
    this.#used.add(id);
    this.#advance();
    return id;
  }

  /** Replaces the ids in use. The next new id lies above them and above the `retired` ones, which still have counters. */
  reset(ids: Iterable<number>, retired: Iterable<number> = []): void {
    this.#used.clear();
    for (const id of ids) this.#used.add(id);
    this.#next = 0;
    for (const all of [this.#used, retired]) {
      for (const id of all) if (id > this.#next && id <= maxServiceId) this.#next = id;
    }
    this.#advance();
  }

  /** Frees `id`, which is reused only after all others. */
  free(id: number): void {
    this.#used.delete(id);
  }

  #advance(): void {
    this.#next = this.#next >= maxServiceId ? 1 : this.#next + 1;
  }
}
