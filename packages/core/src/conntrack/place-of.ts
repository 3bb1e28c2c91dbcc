import type { Frontend, ServiceForwarding } from '../forwarding/forwarding-table.ts';
import type { Port } from '../ip/port.ts';

/** An address and a port as the key of a map. */
export function placeOf(address: Frontend['address'], port: Port): string {
  return `${address} ${port}`;
}

/** Endpoints that still serve, terminating or not, as `placeOf` writes them. */
export function servingPlaces({ knownEndpoints }: ServiceForwarding): ReadonlySet<string> {
  return new Set(knownEndpoints.flatMap(({ serving, address, port }) => (serving ? [placeOf(address, port)] : [])));
}
