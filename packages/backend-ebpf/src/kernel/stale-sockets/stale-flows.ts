import type { BpfEntries } from '@switchyard/native';
import { flowKinds, offsetOf, sizeOf } from '../../render/layouts.ts';

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

/** Sockets by cookie, and where each was led. */
export type StaleFlows = Map<bigint, readonly StaleFlow[]>;

/**
 * Adds the UDP sockets that programs led to endpoints that are gone, generation by id, as far as a part of the flows tells: what
 * programs remember to show the frontend instead. Many of those sockets were closed since. One that never met a service is not among
 * them, wherever it leads.
 */
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
