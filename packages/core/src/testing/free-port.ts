import { createServer } from 'node:net';
import { parsePort, type Port } from '../model/ip/port.ts';

/** Returns a TCP port that was free a moment ago. Default address: 127.0.0.1. */
export async function freePort(address = '127.0.0.1'): Promise<Port> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const found = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (found === null || typeof found === 'string') throw new Error('no port');
  return parsePort(found.port);
}
