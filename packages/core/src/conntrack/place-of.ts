import type { Frontend } from '../forwarding/forwarding-table.ts';
import type { Port } from '../ip/port.ts';

/** An address and a port as the key of a map. */
export function placeOf(address: Frontend['address'], port: Port): string {
  return `${address} ${port}`;
}
