import { randomInt } from 'node:crypto';
import type { LabHost } from './lab.ts';

/** Below the kernel's own choice and below NodePorts, where nobody listens. */
const [firstPort, lastPort] = [12_000, 29_999];
const sequences = new WeakMap<LabHost, () => number>();

/**
 * A port that no attempt of this program from this host has had, until all have been used. The kernel's choice would, now and then, repeat
 * one, and the packet would follow the connection tracking entry of an earlier attempt.
 */
export function freshPort(host: LabHost): number {
  const next = sequences.get(host) ?? portSequence();
  sequences.set(host, next);
  return next();
}

/** Ports in a circle. Begins anywhere: another program may have used the same host. */
export function portSequence(): () => number {
  let port = randomInt(firstPort, lastPort);
  return () => {
    port = port < lastPort ? port + 1 : firstPort;
    return port;
  };
}
