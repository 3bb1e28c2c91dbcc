import {
  addressAndPort,
  type Flow,
  InvariantError,
  type IpAddress,
  type Protocol,
  type SourceClass,
} from '@switchyard/core';
import { summarizeOutcomes, type TracedOutcome, type TracedVerdict } from '@switchyard/core/testing';
import type { MapSet } from '../kernel/kernel.ts';
import {
  actionBits,
  actions,
  affinityKinds,
  endpointFlags,
  frontendFlags,
  frontendScopes,
  masqueradeBit,
  nodeAddressFlags,
  noId,
  offsetOf,
  sizeOf,
  sourceClassIndex,
} from '../render/layouts.ts';
import { addressAt, portBits, putAddress } from '../render/address-words.ts';
import { keyWords } from '../render/frontend-digest.ts';
import { type FoundFrontend, type FoundService, MapReader } from '../kernel/maps/read-maps.ts';

/** Who wants to go where, as programs ask `select.h`. */
export interface PickRequest {
  readonly destination: IpAddress;
  readonly port: number;
  readonly protocol: Protocol;
  readonly from: SourceClass;
  /** By what the client is known: sockets by their network namespace, packets by their source. */
  readonly client:
    | { readonly kind: 'address'; readonly address: IpAddress }
    | { readonly kind: 'networkNamespace'; readonly cookie: bigint };
  /** Nanoseconds of CLOCK_MONOTONIC; pins do not grow old if it is left out. */
  readonly now?: bigint;
  /** The client's pin, instead of the map's. */
  readonly pin?: EndpointReference;
  /** The endpoint that the flow has had: kept while it is alive. */
  readonly kept?: EndpointReference;
}

/** An endpoint as flows and pins remember it. */
export interface EndpointReference {
  readonly endpoint: number;
  readonly generation: number;
}

/** One thing that can come of a request. `again`: what the maps say contradicts itself, as in the middle of a change. */
export type PickOutcome =
  | ({ readonly kind: 'forward'; readonly address: IpAddress; readonly port: number } & ForwardDetails)
  | { readonly kind: 'reject' | 'drop' | 'pass' | 'again' };

/** Input of a program beside the address. */
interface ForwardDetails extends EndpointReference {
  readonly service: number;
  readonly masquerade: boolean;
}

const protocolNumbers: Readonly<Record<Protocol, number>> = { TCP: 6, UDP: 17, SCTP: 132 };

/** The twin of `select.h`: all that can come of a request, over all random numbers. */
export function pickOutcomes(maps: MapSet, request: PickRequest): readonly PickOutcome[] {
  const reader = new MapReader(maps);
  const found = findFrontend(maps, reader, request);
  if ('kind' in found) return [found];
  const service = reader.service(found.service);
  if (service === undefined || service.cookie !== found.cookie) return [{ kind: 'again' }];
  return pick({ maps, reader, request }, found, service);
}

interface Look {
  readonly maps: MapSet;
  readonly reader: MapReader;
  readonly request: PickRequest;
}

/** An address of its own beats a NodePort, a NodePort beats the guard. */
function findFrontend(maps: MapSet, reader: MapReader, request: PickRequest): FoundFrontend | PickOutcome {
  const key = new Uint32Array(keyWords);
  putAddress(key, 0, request.destination);
  const place = portBits(request.port) | (protocolNumbers[request.protocol] << 16);
  key[4] = place | (frontendScopes.address << 24);
  const own = reader.frontend(key);
  if (own !== undefined) return own;
  const flags = maps.node_addresses.lookup(bytesOf(key.subarray(0, 4)));
  if (flags !== undefined && (numberAt(flags, 0) & nodeAddressFlags.nodePort) !== 0) {
    const wildcard = new Uint32Array(keyWords);
    wildcard[4] = place | (frontendScopes.nodePort << 24);
    const nodePort = reader.frontend(wildcard);
    if (nodePort !== undefined) return nodePort;
  }
  return { kind: guard(maps, reader, key) };
}

function guard(maps: MapSet, reader: MapReader, key: Uint32Array): 'pass' | 'reject' | 'drop' {
  const settings = maps.configuration.values();
  const count = settings[offsetOf('configuration', 'guards')] ?? 0;
  const isInside = [0, 1].some((number) => {
    const at = offsetOf('configuration', number === 0 ? 'guard0_address' : 'guard1_address');
    return number < count && isWithin(bytesOf(key.subarray(0, 4)), settings.subarray(at, at + 32));
  });
  if (!isInside && settings[offsetOf('configuration', 'guard_all')] === 0) return 'pass';
  const guardKey = new Uint32Array(keyWords);
  guardKey.set(key.subarray(0, 4));
  guardKey[4] = frontendScopes.guard << 24;
  if (reader.frontend(guardKey) !== undefined) return 'reject';
  return isInside ? 'drop' : 'pass';
}

/** `cidr`: address, then mask. */
function isWithin(address: Uint8Array, cidr: Uint8Array): boolean {
  return address.every((byte, index) => (byte & (cidr[16 + index] ?? 0)) === cidr[index]);
}

function pick(look: Look, frontend: FoundFrontend, service: FoundService): readonly PickOutcome[] {
  const { maps, request } = look;
  const { actions: bits, service: id } = frontend;
  if (request.client.kind === 'networkNamespace') {
    if ((bits & (frontendFlags.socketsPass | frontendFlags.sourceRanges)) !== 0) return [{ kind: 'pass' }];
  } else if ((bits & frontendFlags.sourceRanges) !== 0 && !isAllowed(maps, id, request.client.address)) {
    return [{ kind: 'drop' }];
  }
  const ofClass = bits >>> (sourceClassIndex[request.from] * actionBits);
  const action = ofClass & (masqueradeBit - 1);
  const masquerade = (ofClass & masqueradeBit) !== 0;
  const set = action === actions.local ? service.local : service.cluster;
  if (action === actions.reject || (action === actions.cluster && set.count === 0)) return [{ kind: 'reject' }];
  if (action === actions.drop || set.count === 0) return [{ kind: 'drop' }];
  const read = (reference: EndpointReference, flags: number): PickOutcome | undefined =>
    readEndpoint(look, reference, { service: id, flags, masquerade });
  const kept = request.kept === undefined ? undefined : read(request.kept, endpointFlags.alive);
  if (kept !== undefined) return [kept];
  const pin = service.affinitySeconds === 0 ? undefined : pinOf(look, id, service.affinitySeconds);
  const inSet = action === actions.local ? endpointFlags.inLocal : endpointFlags.inCluster;
  const pinned = pin === undefined ? undefined : read(pin, endpointFlags.alive | inSet);
  if (pinned !== undefined) return [pinned];
  return look.reader.endpointsOf(id, set).map((endpoint): PickOutcome => {
    const drawn = endpoint === noId ? undefined : read({ endpoint, generation: 0 }, endpointFlags.alive);
    return drawn ?? { kind: 'again' };
  });
}

interface ReadRequest {
  readonly service: number;
  readonly flags: number;
  readonly masquerade: boolean;
}

/** Generation 0: any. */
function readEndpoint({ reader }: Look, reference: EndpointReference, wanted: ReadRequest): PickOutcome | undefined {
  const record = reader.endpoint(reference.endpoint);
  if (record === undefined || (record.flags & wanted.flags) !== wanted.flags) return undefined;
  if (reference.generation !== 0 && record.generation !== reference.generation) return undefined;
  if (record.service !== wanted.service) return undefined;
  return {
    kind: 'forward',
    address: addressAt(record.words, record.at),
    port: portBits(record.portBits),
    endpoint: reference.endpoint,
    generation: record.generation,
    service: wanted.service,
    masquerade: wanted.masquerade,
  };
}

function isAllowed(maps: MapSet, service: number, address: IpAddress): boolean {
  const key = new Uint32Array(sizeOf('source_range_key') / 4);
  key[0] = 160;
  key[1] = service;
  putAddress(key, 2, address);
  return maps.source_ranges.lookup(bytesOf(key)) !== undefined;
}

function pinOf({ maps, request }: Look, service: number, seconds: number): EndpointReference | undefined {
  if (request.pin !== undefined) return request.pin;
  const value = maps.affinity.lookup(affinityKey(service, request.client));
  if (value === undefined) return undefined;
  const seen = new DataView(value.buffer, value.byteOffset).getBigUint64(offsetOf('affinity_value', 'last_seen'), true);
  const { now = seen } = request;
  if (now > seen && now - seen > BigInt(seconds) * 1_000_000_000n) return undefined;
  return {
    endpoint: numberAt(value, offsetOf('affinity_value', 'endpoint')),
    generation: numberAt(value, offsetOf('affinity_value', 'generation')),
  };
}

/** The key under which programs remember a client of a service. */
export function affinityKey(service: number, client: PickRequest['client']): Uint8Array {
  const words = new Uint32Array(sizeOf('affinity_key') / 4);
  words[0] = service;
  words[1] = affinityKinds[client.kind];
  if (client.kind === 'address') putAddress(words, 2, client.address);
  else {
    words[4] = Number(client.cookie & 0xffffffffn);
    words[5] = Number(client.cookie >> 32n);
  }
  return bytesOf(words);
}

/** Pins a client as programs do. */
export function pinClient(
  maps: MapSet,
  pin: EndpointReference & { readonly service: number; readonly client: PickRequest['client']; readonly seen?: bigint },
): void {
  const value = new DataView(new ArrayBuffer(sizeOf('affinity_value')));
  value.setUint32(offsetOf('affinity_value', 'endpoint'), pin.endpoint, true);
  value.setUint32(offsetOf('affinity_value', 'generation'), pin.generation, true);
  value.setBigUint64(offsetOf('affinity_value', 'last_seen'), pin.seen ?? 0n, true);
  maps.affinity.update(affinityKey(pin.service, pin.client), new Uint8Array(value.buffer));
}

/** Program that sees a packet first: at the sockets of this node's pods and processes, or at the wire. */
export type PacketPath = 'socket' | 'wire';

/** How `tracePacket` is to go. */
export interface TraceOptions {
  readonly path: PacketPath;
  /** The client was at the endpoint with this address before, where the Service keeps clients. */
  readonly returningTo?: IpAddress;
}

/**
 * Verdicts of programs for the first packet of a flow, over all random choices. `pass`: it is not for them, and any rules there
 * are have their turn. Sockets are never masqueraded; on the wire, an endpoint that is the sender always is. Throws `InvariantError`
 * if it depends on chance, or if the maps contradict themselves.
 */
export function tracePacket(maps: MapSet, flow: Flow, { path, returningTo }: TraceOptions): TracedVerdict {
  const { destination, destinationPort: port, protocol, from, source } = flow;
  const client: PickRequest['client'] =
    path === 'socket' ? { kind: 'networkNamespace', cookie: 1n } : { kind: 'address', address: source };
  const request: PickRequest = { destination, port, protocol, from, client };
  const first = pickOutcomes(maps, request);
  const before = first.find((one) => one.kind === 'forward' && one.address === returningTo);
  const outcomes = before?.kind === 'forward' ? pickOutcomes(maps, { ...request, pin: before }) : first;
  const traced = outcomes.map((outcome): TracedOutcome => {
    if (outcome.kind === 'again')
      throw new InvariantError(`the maps contradict themselves about ${destination}:${port}`);
    if (outcome.kind !== 'forward') return { kind: outcome.kind };
    const { address } = outcome;
    const masquerade = path === 'wire' && (outcome.masquerade || address === source);
    return { kind: 'forward', address, endpoint: addressAndPort(address, outcome.port), masquerade };
  });
  return path === 'wire' ? summarizeOutcomes(traced, flow, 'the slot') : summarizeSocket(traced, flow);
}

/** A socket that reaches its own address is not masqueraded: it is then a connection of its own network namespace. */
function summarizeSocket(traced: readonly TracedOutcome[], flow: Flow): TracedVerdict {
  const marked = traced.map((one) =>
    one.kind === 'forward' && one.address === flow.source ? { ...one, masquerade: true } : one,
  );
  const verdict = summarizeOutcomes(marked, flow, 'the slot');
  return verdict.kind === 'forward' ? { ...verdict, masquerade: false } : verdict;
}

function bytesOf(words: Uint32Array): Uint8Array {
  return new Uint8Array(words.slice().buffer);
}

function numberAt(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(at, true);
}
