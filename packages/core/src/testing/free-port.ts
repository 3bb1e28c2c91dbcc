import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { parsePort, type Port } from '../model/ip/port.ts';

/** Ports that the kernel gives to no socket by itself, unlike those from 32768 on (ip_local_port_range). */
const first = 20_000;
const count = 10_000;
/** Starts at random, so that tests of several processes rarely try the same port. */
let next = randomInt(count);

/** Returns a free TCP port. The next call returns another one. Default address: 127.0.0.1. */
export async function freePort(address = '127.0.0.1'): Promise<Port> {
  for (let tried = 0; tried < count; tried++) {
    const port = first + (next++ % count);
    if (await isFree(port, address)) return parsePort(port);
  }
  throw new Error(`no port from ${first} to ${first + count - 1} is free at ${address}`);
}

function isFree(port: number, address: string): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen({ port, host: address, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
