import { ipFamilyOf, ipToBytes, parseIp } from '@switchyard/core';
import type { BpfMap } from '@switchyard/native';
import { clearMap } from '@switchyard/native/testing';
import {
  endpointFlags,
  fieldSizes,
  frontendScopes,
  type Layout,
  type LayoutName,
  layouts,
  type MapName,
  nodeAddressFlags,
  offsetOf,
  sizeOf,
} from '../../src/render/layouts.ts';

/** Addresses as text; what is missing is zero. */
type Fields = Readonly<Record<string, number | bigint | string>>;

/** The bytes of a record. */
export function record(name: LayoutName, fields: Fields): Uint8Array {
  const bytes = new Uint8Array(sizeOf(name));
  const view = new DataView(bytes.buffer);
  let offset = 0;
  for (const [field, type] of layouts[name] as Layout) {
    const value = fields[field] ?? 0;
    if (type === 'bytes16') bytes.set(value === 0 ? new Uint8Array(16) : address16(String(value)), offset);
    else if (type === 'be16') view.setUint16(offset, Number(value));
    else if (type === 'u64') view.setBigUint64(offset, BigInt(value), true);
    else
      for (let byte = 0; byte < fieldSizes[type]; byte++) view.setUint8(offset + byte, Number(value) / 2 ** (byte * 8));
    offset += fieldSizes[type];
  }
  return bytes;
}

/** An address in 16 bytes, IPv4 as ::ffff:a.b.c.d. */
export function address16(text: string): Uint8Array {
  const ip = parseIp(text);
  if (ipFamilyOf(ip) === 'IPv6') return ipToBytes(ip);
  return Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...ipToBytes(ip));
}

/** An endpoint as a test writes it. */
export interface WrittenEndpoint {
  readonly address: string;
  readonly port: number;
  readonly service: number;
  /** Default 1. */
  readonly generation?: number;
  /** Default: alive and in both sets. */
  readonly flags?: number;
}

/** A frontend as a test writes it. */
export interface WrittenFrontend {
  /** 'nodePort': at all node addresses. */
  readonly address: string;
  readonly port: number;
  readonly protocol: number;
  readonly service: number;
  readonly cookie: number;
  /** Nine bits of actions, and flags. */
  readonly actions: number;
}

/**
 * Puts into maps exactly what a test says, also what the agent would never write. Only `publish` is a single store.
 */
export class WrittenMaps {
  readonly #maps: ReadonlyMap<string, BpfMap>;

  constructor(maps: ReadonlyMap<string, BpfMap>) {
    this.#maps = maps;
  }

  /** A map, or the test is wrong. */
  map(name: MapName): BpfMap {
    const map = this.#maps.get(name);
    if (map === undefined) throw new Error(`the object has no map ${name}`);
    return map;
  }

  configure(fields: Fields): void {
    this.map('configuration').update(index(0), record('configuration', fields));
  }

  endpoint(id: number, { generation = 1, flags = 7, ...rest }: WrittenEndpoint): void {
    this.map('endpoints').update(index(id), record('endpoint', { ...rest, generation, flags }));
  }

  /** Not alive any more. */
  kill(id: number): void {
    const bytes = this.map('endpoints').lookup(index(id)) ?? new Uint8Array(sizeOf('endpoint'));
    const at = offsetOf('endpoint', 'flags');
    bytes[at] = (bytes[at] ?? 0) & ~endpointFlags.alive;
    this.map('endpoints').update(index(id), bytes);
  }

  service(id: number, fields: Fields): void {
    this.map('services').update(index(id), record('service', fields));
  }

  /** Slots from `base` on for these endpoints. Returns the word of the selection. */
  slots(service: number, base: number, endpoints: readonly number[]): bigint {
    endpoints.forEach((endpoint, position) => {
      this.map('slots').update(index(base + position), word((BigInt(endpoint) << 32n) | BigInt(service)));
    });
    return BigInt(base) | (BigInt(endpoints.length) << 32n);
  }

  /** The commit: one store. */
  publish(service: number, field: 'cluster_set' | 'local_set', selection: bigint): void {
    const { buffer, byteOffset, byteLength } = this.map('services').values();
    const words = new BigUint64Array(buffer, byteOffset, byteLength / 8);
    Atomics.store(words, (service * sizeOf('service') + offsetOf('service', field)) / 8, selection);
  }

  frontend({ address, port, protocol, service, cookie, actions }: WrittenFrontend): void {
    const value = (BigInt(cookie) << 48n) | (BigInt(actions) << 32n) | BigInt(service);
    this.map('frontends').update(frontendKey(address, port, protocol), word(value));
  }

  forgetFrontend({ address, port, protocol }: Pick<WrittenFrontend, 'address' | 'port' | 'protocol'>): void {
    this.map('frontends').delete(frontendKey(address, port, protocol));
  }

  guard(address: string): void {
    this.map('frontends').update(record('frontend_key', { address, scope: frontendScopes.guard }), word(0n));
  }

  nodeAddress(address: string, flags: number = nodeAddressFlags.nodePort): void {
    this.map('node_addresses').update(address16(address), index(flags));
  }

  sourceRange(service: number, cidr: string): void {
    const [address = '', length = ''] = cidr.split('/');
    const bits = Number(length) + (ipFamilyOf(parseIp(address)) === 'IPv4' ? 96 : 0) + 32;
    this.map('source_ranges').update(
      record('source_range_key', { prefix_length: bits, service, address }),
      Uint8Array.of(1),
    );
  }

  /** Counters of a service, over all CPUs. */
  counters(service: number): Readonly<Record<string, number>> {
    const bytes = this.map('statistics').lookup(index(service)) ?? new Uint8Array();
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const sums: Record<string, number> = {};
    for (let at = 0; at < bytes.length; at += sizeOf('statistics')) {
      layouts.statistics.forEach(([name], position) => {
        sums[name] = (sums[name] ?? 0) + Number(view.getBigUint64(at + position * 8, true));
      });
    }
    return sums;
  }

  /** How many entries a map has. */
  size(name: MapName): number {
    return this.map(name).entries().count;
  }

  /** Empties a hash table. */
  empty(name: MapName): void {
    clearMap(this.map(name));
  }
}

function frontendKey(address: string, port: number, protocol: number): Uint8Array {
  const isWildcard = address === 'nodePort';
  const scope = isWildcard ? frontendScopes.nodePort : frontendScopes.address;
  return record('frontend_key', { address: isWildcard ? 0 : address, port, protocol, scope });
}

/** A 32-bit number: the key of an array. */
export function index(number: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(number).buffer);
}

function word(value: bigint): Uint8Array {
  return new Uint8Array(BigUint64Array.of(value).buffer);
}

/** The address and the mask of a service CIDR, as `configuration` has them. */
export function guardFields(number: 0 | 1, cidr: string): Fields {
  const [address = '', length = ''] = cidr.split('/');
  const isV4 = ipFamilyOf(parseIp(address)) === 'IPv4';
  const mask = Array.from({ length: 8 }, (_, group) => maskGroup(Number(length) + (isV4 ? 96 : 0) - group * 16)).join(
    ':',
  );
  return { [`guard${number}_address`]: address, [`guard${number}_mask`]: mask };
}

function maskGroup(bits: number): string {
  return ((0xffff << (16 - Math.min(16, Math.max(0, bits)))) & 0xffff).toString(16);
}
