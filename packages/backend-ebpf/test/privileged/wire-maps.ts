import { type IpAddress, ipFamilyOf, parseIp } from '@switchyard/core';
import { createMap } from '@switchyard/native';
import type { MapSet } from '../../src/kernel/kernel.ts';
import { mapSetOf } from '../../src/kernel/programs/map-sets.ts';
import {
  actionBits,
  actions,
  endpointFlags,
  frontendFlags,
  frontendScopes,
  type LayoutName,
  layouts,
  mapShapes,
  masqueradeBit,
  nodeAddressFlags,
  offsetOf,
  sizeOf,
  smallestSizes,
  sourceClassIndex,
} from '../../src/render/layouts.ts';

/** Action for a class, with `+` for masquerading. */
export type ActionText = 'reject' | 'drop' | 'cluster' | 'local' | 'cluster+' | 'local+';

/** One Service as it is written. */
export interface WireService {
  /** Addresses and ports; `nodePort` for all addresses of the node. */
  readonly frontends: readonly (readonly [address: string, port: number])[];
  readonly protocol: 'tcp' | 'udp';
  readonly actions: Readonly<Record<keyof typeof sourceClassIndex, ActionText>>;
  /** Those first in the list that are on this node; all are in the other set. */
  readonly endpoints: readonly (readonly [address: string, port: number, place: 'near' | 'far'])[];
  readonly affinity?: number;
  readonly ranges?: readonly string[];
}

const protocols = { tcp: 6, udp: 17 } as const;
/** Not zero, so that a program which does not compare it is found out. */
const cookie = 0x1234;

/** Maps with Services written straight into them, by the layouts alone. */
export class WireMaps implements Disposable {
  readonly maps: MapSet;
  #services = 0;
  #endpoints = 0;
  #slots = 0;

  constructor() {
    const shapes = mapShapes(smallestSizes);
    this.maps = mapSetOf((name) => createMap(shapes[name]));
  }

  /** Returns its id. */
  add({ frontends, protocol, actions: texts, endpoints, affinity = 0, ranges }: WireService): number {
    const service = ++this.#services;
    const near = endpoints.filter(([, , place]) => place === 'near').length;
    const base = this.#slots;
    for (const endpoint of [
      ...endpoints.filter(([, , place]) => place === 'near'),
      ...endpoints.filter(([, , place]) => place === 'far'),
    ]) {
      this.#addEndpoint(service, endpoint);
    }
    const record = recordOf('service', { affinity_seconds: affinity, cookie });
    record.view.setBigUint64(offsetOf('service', 'cluster_set'), selection(base, endpoints.length), true);
    record.view.setBigUint64(offsetOf('service', 'local_set'), selection(base, near), true);
    this.maps.services.update(numberKey(service), record.bytes);
    for (const range of ranges ?? []) this.#addRange(service, range);
    const bits = (Object.keys(sourceClassIndex) as (keyof typeof sourceClassIndex)[]).reduce(
      (sum, name) => sum | (actionOf(texts[name]) << (sourceClassIndex[name] * actionBits)),
      ranges === undefined ? 0 : frontendFlags.sourceRanges,
    );
    const value = new Uint8Array(8);
    new DataView(value.buffer).setBigUint64(0, BigInt(service) | (BigInt(bits) << 32n) | (BigInt(cookie) << 48n), true);
    for (const [address, port] of frontends) {
      const isNodePort = address === 'nodePort';
      const scope = isNodePort ? frontendScopes.nodePort : frontendScopes.address;
      const key = recordOf('frontend_key', { port, protocol: protocols[protocol], scope });
      if (!isNodePort) key.bytes.set(mapped(address));
      this.maps.frontends.update(key.bytes, value);
    }
    return service;
  }

  /** An address of the node, on which NodePorts answer. */
  addNodeAddress(address: string): void {
    this.maps.node_addresses.update(mapped(address), numberKey(nodeAddressFlags.nodePort));
  }

  /** `10.244.0.0/16` */
  addPodCidr(cidr: string): void {
    const [address = '', length = ''] = cidr.split('/');
    const key = recordOf('pod_cidr_key', { prefix_length: prefixOf(address, length) });
    key.bytes.set(mapped(address), offsetOf('pod_cidr_key', 'address'));
    this.maps.pod_cidrs.update(key.bytes, Uint8Array.of(1));
  }

  /** A service CIDR, and in it an address of a Service. */
  guard(cidr: string, address: string): void {
    const [network = '', length = ''] = cidr.split('/');
    const record = recordOf('configuration', { guards: 1 });
    record.bytes.set(mapped(network), offsetOf('configuration', 'guard0_address'));
    const mask = offsetOf('configuration', 'guard0_mask');
    const bits = prefixOf(network, length);
    for (let at = 0; at < 16; at++)
      record.bytes[mask + at] = (0xff << (8 - Math.max(0, Math.min(8, bits - at * 8)))) & 0xff;
    this.maps.configuration.update(numberKey(0), record.bytes);
    const key = recordOf('frontend_key', { scope: frontendScopes.guard });
    key.bytes.set(mapped(address));
    this.maps.frontends.update(key.bytes, new Uint8Array(8));
  }

  /** Connections, no local endpoint, no endpoints, source range: over all CPUs. */
  counters(service: number): readonly number[] {
    const values = this.maps.statistics.lookup(numberKey(service)) ?? new Uint8Array(0);
    const view = new DataView(values.buffer, values.byteOffset, values.byteLength);
    const sums = [0, 0, 0, 0];
    for (let at = 0; at < values.length; at += 8) sums[(at / 8) % 4]! += Number(view.getBigUint64(at, true));
    return sums;
  }

  [Symbol.dispose](): void {
    for (const map of Object.values(this.maps)) map[Symbol.dispose]();
  }

  #addEndpoint(service: number, [address, port, place]: WireService['endpoints'][number]): void {
    const id = ++this.#endpoints;
    const flags = endpointFlags.alive | endpointFlags.inCluster | (place === 'near' ? endpointFlags.inLocal : 0);
    const record = recordOf('endpoint', { port, flags, generation: 1, service });
    record.bytes.set(mapped(address));
    this.maps.endpoints.update(numberKey(id), record.bytes);
    const slot = new Uint8Array(8);
    new DataView(slot.buffer).setBigUint64(0, BigInt(service) | (BigInt(id) << 32n), true);
    this.maps.slots.update(numberKey(this.#slots++), slot);
  }

  #addRange(service: number, cidr: string): void {
    const [address = '', length = ''] = cidr.split('/');
    const key = recordOf('source_range_key', { prefix_length: 32 + prefixOf(address, length), service });
    key.bytes.set(mapped(address), offsetOf('source_range_key', 'address'));
    this.maps.source_ranges.update(key.bytes, Uint8Array.of(1));
  }
}

function actionOf(text: ActionText): number {
  const name = text.replace('+', '') as keyof typeof actions;
  return actions[name] | (text.endsWith('+') ? masqueradeBit : 0);
}

function selection(base: number, count: number): bigint {
  return BigInt(base) | (BigInt(count) << 32n) | (1n << 48n);
}

/** Bits of a prefix among 128. */
function prefixOf(address: string, length: string): number {
  return Number(length) + (address.includes(':') ? 0 : 96);
}

/** 16 bytes. */
export function mapped(text: string): Uint8Array {
  const address: IpAddress = parseIp(text);
  if (ipFamilyOf(address) === 'IPv4') {
    return Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...address.split('.').map(Number));
  }
  const [head = '', tail] = address.split('::');
  const words = (part: string): readonly number[] =>
    part === '' ? [] : part.split(':').map((word) => parseInt(word, 16));
  const first = words(head);
  const last = words(tail ?? '');
  const all = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last];
  return Uint8Array.from(all.flatMap((word) => [word >> 8, word & 0xff]));
}

function numberKey(number: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, number, true);
  return bytes;
}

/** A record of zeros but for some numbers. */
function recordOf(
  name: LayoutName,
  numbers: Readonly<Record<string, number>>,
): { readonly bytes: Uint8Array; readonly view: DataView } {
  const bytes = new Uint8Array(sizeOf(name));
  const view = new DataView(bytes.buffer);
  let offset = 0;
  for (const [field, type] of layouts[name]) {
    const value = numbers[field];
    const size = { u8: 1, u16: 2, be16: 2, u32: 4, u64: 8, bytes16: 16 }[type];
    if (value !== undefined) {
      if (type === 'u8') view.setUint8(offset, value);
      else if (type === 'u32') view.setUint32(offset, value, true);
      else view.setUint16(offset, value, type === 'u16');
    }
    offset += size;
  }
  return { bytes, view };
}
