import type { MapSet } from '../kernel.ts';
import { bytesOf } from '../../render/address-words.ts';
import { actions, endpointFlags, frontendScopes, offsetOf, sizeOf } from '../../render/layouts.ts';

/** 192.0.2.1:80 over TCP, which forwards to 192.0.2.2:8080: addresses for documentation. */
const frontend = { address: [192, 0, 2, 1], port: 80 } as const;
const endpoint = { address: [192, 0, 2, 2], port: 8080 } as const;
const client = { address: [192, 0, 2, 3], port: 40_000 } as const;
const tcp = 6;
const id = 1;
const cookie = 1;

/** Writes one Service into empty maps. */
export function writeProbedService(maps: MapSet): void {
  const target = record('endpoint', endpoint.address);
  target.view.setUint16(offsetOf('endpoint', 'port'), endpoint.port);
  target.view.setUint16(offsetOf('endpoint', 'flags'), endpointFlags.alive | endpointFlags.inCluster, true);
  target.view.setUint32(offsetOf('endpoint', 'generation'), 1, true);
  target.view.setUint32(offsetOf('endpoint', 'service'), id, true);
  maps.endpoints.update(wordBytes(id), target.bytes);
  maps.slots.update(wordBytes(0), wordBytes(id, id));
  const service = record('service', []);
  service.view.setBigUint64(offsetOf('service', 'cluster_set'), 1n << 32n, true); // one slot, the first
  service.view.setUint16(offsetOf('service', 'cookie'), cookie, true);
  maps.services.update(wordBytes(id), service.bytes);
  const key = record('frontend_key', frontend.address);
  key.view.setUint16(offsetOf('frontend_key', 'port'), frontend.port);
  key.view.setUint8(offsetOf('frontend_key', 'protocol'), tcp);
  key.view.setUint8(offsetOf('frontend_key', 'scope'), frontendScopes.address);
  const forAll = actions.cluster | (actions.cluster << 3) | (actions.cluster << 6);
  maps.frontends.update(key.bytes, wordBytes(id, forAll | (cookie << 16)));
}

/** First packet of a connection to it, from the Ethernet header on. Without checksums, which the program does not read. */
export const firstPacket: Uint8Array = Uint8Array.from(
  [
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x00],
    [0x45, 0, 0, 40, 0, 1, 0, 0, 64, tcp, 0, 0, ...client.address, ...frontend.address],
    [client.port >> 8, client.port & 0xff, 0, frontend.port],
    [0, 0, 0, 1, 0, 0, 0, 0], // sequence and acknowledged numbers
    [0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0], // SYN
  ].flat(),
);

/** A record of zeros that begins with an address. */
function record(
  name: 'endpoint' | 'service' | 'frontend_key',
  address: readonly number[],
): { readonly bytes: Uint8Array; readonly view: DataView } {
  const bytes = new Uint8Array(sizeOf(name));
  if (address.length > 0) bytes.set([0xff, 0xff, ...address], 10); // ::ffff:a.b.c.d
  return { bytes, view: new DataView(bytes.buffer) };
}

function wordBytes(...words: readonly number[]): Uint8Array {
  return bytesOf(Uint32Array.from(words));
}
