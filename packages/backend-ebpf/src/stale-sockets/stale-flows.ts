import type { BpfMap } from '@switchyard/native';
import { flowKinds, offsetOf, sizeOf } from '../layouts.ts';

/** An endpoint whose id means nobody any more. */
export interface GoneEndpoint {
  readonly id: number;
  /** Of the id, at the time it was this endpoint's. */
  readonly generation: number;
}

/** Where a socket was led that programs led to an endpoint that is gone. */
export interface StaleFlow {
  /** 16 bytes. */
  readonly address: Uint8Array;
  readonly port: number;
}

const udp = 17;
const key = {
  size: sizeOf('flow_key'),
  socket: offsetOf('flow_key', 'socket'),
  address: offsetOf('flow_key', 'address'),
  port: offsetOf('flow_key', 'port'),
  protocol: offsetOf('flow_key', 'protocol'),
  kind: offsetOf('flow_key', 'kind'),
} as const;
const value = {
  size: sizeOf('flow_value'),
  endpoint: offsetOf('flow_value', 'endpoint'),
  generation: offsetOf('flow_value', 'generation'),
} as const;

/**
 * The UDP sockets, by cookie, that programs led to one of these endpoints, and where: what they remember to show the frontend instead. Many of
 * those sockets were closed since. One that never met a service is not among them, wherever it leads.
 */
export function findStaleFlows(flows: BpfMap, gone: Iterable<GoneEndpoint>): ReadonlyMap<bigint, readonly StaleFlow[]> {
  const generationById = new Map([...gone].map(({ id, generation }) => [id, generation]));
  const { keys, values, count } = flows.entries();
  const keyView = new DataView(keys.buffer, keys.byteOffset, keys.byteLength);
  const valueView = new DataView(values.buffer, values.byteOffset, values.byteLength);
  const found = new Map<bigint, StaleFlow[]>();
  for (let index = 0; index < count; index++) {
    const [at, valueAt] = [index * key.size, index * value.size];
    if (keys[at + key.protocol] !== udp || keys[at + key.kind] !== flowKinds.reverse) continue;
    const generation = generationById.get(valueView.getUint32(valueAt + value.endpoint, true));
    if (generation !== valueView.getUint32(valueAt + value.generation, true)) continue;
    const cookie = keyView.getBigUint64(at + key.socket, true);
    const led = found.get(cookie) ?? [];
    const address = keys.slice(at + key.address, at + key.address + 16);
    found.set(cookie, [...led, { address, port: keyView.getUint16(at + key.port) }]);
  }
  return found;
}
