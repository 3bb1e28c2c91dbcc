import { ConfigError } from '@switchyard/core';
import type { LoadBalancerHost } from './load-balancer-host.ts';
import type { Stage } from './stage.ts';

/** Starts a real Docker Engine in the lab's load-balancer host. */
export function startDockerHost(
  _stage: Stage,
  _tell: (text: string) => void,
  _signal: AbortSignal,
): Promise<LoadBalancerHost> {
  throw new ConfigError('demo.lb', '--lb docker: this checkout has no docker runtime yet; use --lb process');
}
