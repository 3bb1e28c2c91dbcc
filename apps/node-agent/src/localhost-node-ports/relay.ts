import type { Socket } from 'node:net';

/**
 * Relays data in both directions between two half-open sockets until both have ended. The end of one direction is relayed and leaves
 * the other open; a failure of one socket resets the other. Each direction buffers no more than both sockets do.
 */
export function relay(client: Socket, endpoint: Socket): void {
  passOn(client, endpoint);
  passOn(endpoint, client);
}

function passOn(from: Socket, to: Socket): void {
  from.on('error', () => to.resetAndDestroy());
  from.on('close', () => {
    if (!from.readableEnded) to.destroy(); // closed before its end was read: nothing ends `to` otherwise
  });
  if (from.destroyed) to.resetAndDestroy();
  else from.pipe(to);
}
