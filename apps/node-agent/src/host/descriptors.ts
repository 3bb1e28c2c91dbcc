import { HostError } from '@switchyard/core';
import { type HttpLimits, usualHttpLimits } from '@switchyard/core/health';
import type { KernelFiles } from '@switchyard/host';

/** Minimum of file descriptors: about 35 when idle, the others for commands and the API server. The launchers have the same number. */
export const fewestDescriptors = 64;

/**
 * The most file descriptors that this process may open; Node has raised the soft limit to the hard one. Throws `HostError` for
 * fewer than `fewestDescriptors`.
 */
export function readDescriptorLimit(files: Pick<KernelFiles, 'read'>): number {
  const text = /^Max open files\s+(\w+)/m.exec(files.read('/proc/self/limits') ?? '')?.[1];
  const limit = Number(text === undefined || text === 'unlimited' ? Infinity : text);
  if (limit >= fewestDescriptors) return limit;
  const advice = 'raise it (ulimit -n 1024, or LimitNOFILE=1024 of a systemd unit)';
  throw new HostError(
    'host.descriptors',
    `the limit of open files is ${limit}, at least ${fewestDescriptors} are needed: ${advice}`,
  );
}

/** Limits of the loopback proxy (docs/design/localhost-node-ports.md). */
export interface ProxyLimits {
  /** NodePorts per IP family. */
  readonly listeners: number;
  /** Connections of both families, each with two descriptors. */
  readonly connections: number;
}

/** Buffers of a connection that is not read take up to some 300 kB. */
const maxProxyConnections = 1000;

/** An eighth of the spare descriptors for the listeners of each family, and as many for connections. */
export function proxyLimitsFor(descriptors: number): ProxyLimits {
  const share = Math.max(8, Math.floor((descriptors - fewestDescriptors) / 8));
  return { listeners: share, connections: Math.min(maxProxyConnections, Math.max(8, Math.floor(share / 2))) };
}

/**
 * Limits of HTTP clients: a quarter of the spare descriptors per socket, which leaves descriptors for everything else, because
 * there are two servers and those of healthCheckNodePorts.
 */
export function httpLimitsFor(descriptors: number): HttpLimits {
  const spare = descriptors - fewestDescriptors;
  const share = (part: number, most: number): number => Math.min(most, Math.max(8, Math.floor(spare * part)));
  return {
    ...usualHttpLimits,
    connections: share(1 / 5, usualHttpLimits.connections),
    connectionsOfNode: share(1 / 20, usualHttpLimits.connectionsOfNode),
  };
}
