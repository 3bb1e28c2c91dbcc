import { randomInt } from 'node:crypto';
import type { LabHost } from './lab.ts';

/** Below the kernel's own choice and below NodePorts, where nobody listens. */
const [firstPort, lastPort] = [12_000, 29_999];
const nextPorts = new WeakMap<LabHost, number>();

/**
 * A port that no attempt of this program from this host has had, until all have been used. The kernel's choice would, now and then, repeat
 * one, and the packet would follow the connection tracking entry of an earlier attempt. Begins anywhere: another program may have used
 * the same host.
 */
export function freshPort(host: LabHost): number {
  const port = nextPorts.get(host) ?? randomInt(firstPort, lastPort);
  nextPorts.set(host, port < lastPort ? port + 1 : firstPort);
  return port;
}
