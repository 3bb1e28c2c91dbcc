import { randomInt } from 'node:crypto';
import type { LabHost } from './lab.ts';

/** Below the kernel's ephemeral ports and below NodePorts, where no program listens. */
const [firstPort, lastPort] = [12_000, 29_999];
const sequences = new WeakMap<LabHost, () => number>();

/**
 * Returns a source port that this program has not used on this host, until all are used. The kernel would sometimes reuse a port,
 * and the packet would match the connection tracking entry of an earlier attempt.
 */
export function freshPort(host: LabHost): number {
  const next = sequences.get(host) ?? portSequence();
  sequences.set(host, next);
  return next();
}

/** Returns ports round-robin from a random start: another program may have used the same host. */
export function portSequence(): () => number {
  let port = randomInt(firstPort, lastPort);
  return () => {
    port = port < lastPort ? port + 1 : firstPort;
    return port;
  };
}
