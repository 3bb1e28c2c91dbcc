import { ConfigError } from '@switchyard/core';
import type { RunSettings } from '../run-record.ts';
import { type LoadBalancer, type LoadBalancerSettings, startProcessLoadBalancer } from './load-balancer.ts';
import type { Stage } from './stage.ts';

/** Starts the load balancer where the settings say. */
export function startLoadBalancer(
  stage: Stage,
  settings: LoadBalancerSettings & Pick<RunSettings, 'runtime'>,
): Promise<LoadBalancer> {
  if (settings.runtime === 'process') return Promise.resolve(startProcessLoadBalancer(stage, settings));
  throw new ConfigError('demo.lb', '--lb docker: this checkout has no docker runtime yet; use --lb process');
}
