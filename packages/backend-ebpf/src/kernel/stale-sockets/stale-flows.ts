import type { BpfEntries } from '@switchyard/native';
import { flowKinds, offsetOf, sizeOf } from '../../render/layouts.ts';

/** A deleted endpoint. */
export interface GoneEndpoint {
  readonly id: number;
  /** Generation that the id had for this endpoint. */
  readonly generation: number;
}

/** Destination of a socket that programs connected to a deleted endpoint. */
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

/** Destinations by socket cookie. */
export type StaleFlows = Map<bigint, readonly StaleFlow[]>;

/** Adds the UDP sockets that programs connected to deleted endpoints (`gone`: generation by id). */
export function addStaleFlows(
  found: StaleFlows,
  { keys, values, count }: BpfEntries,
  gone: ReadonlyMap<number, number>,
): void {
  const keyView = new DataView(keys.buffer, keys.byteOffset, keys.byteLength);
  const valueView = new DataView(values.buffer, values.byteOffset, values.byteLength);
  for (let index = 0; index < count; index++) {
    const [at, valueAt] = [index * key.size, index * value.size];
    if (keys[at + key.protocol] !== udp || keys[at + key.kind] !== flowKinds.reverse) continue;
    const generation = gone.get(valueView.getUint32(valueAt + value.endpoint, true));
    if (generation !== valueView.getUint32(valueAt + value.generation, true)) continue;
    const cookie = keyView.getBigUint64(at + key.socket, true);
    const address = keys.slice(at + key.address, at + key.address + 16);
    found.set(cookie, [...(found.get(cookie) ?? []), { address, port: keyView.getUint16(at + key.port) }]);
  }
}
