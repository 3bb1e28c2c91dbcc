import type { RunSettings } from '../run-record.ts';
import { startDockerHost } from './docker-host.ts';
import { type LoadBalancer, type LoadBalancerSettings, runLoadBalancer, settingArgs } from './load-balancer.ts';
import type { Stage } from './stage.ts';

/** The lab's load-balancer host, ready to run load balancers one after the other. Disposing it comes after theirs. */
export interface LoadBalancerHost extends AsyncDisposable {
  start(settings: LoadBalancerSettings): LoadBalancer;
}

/** Prepares the host for a runtime. `docker` starts a Docker Engine there and builds the image, told to `tell`; it fails with what was missing. */
export async function prepareLoadBalancerHost(
  stage: Stage,
  options: { readonly runtime: RunSettings['runtime']; readonly tell: (text: string) => void },
  signal: AbortSignal,
): Promise<LoadBalancerHost> {
  if (options.runtime === 'docker') return startDockerHost(stage, options.tell, signal);
  return {
    start: (settings) => {
      const address = `--address=${stage.lab.loadBalancer.addresses.IPv4}`;
      return runLoadBalancer(stage, { args: ['--runtime=process', address, ...settingArgs(settings)], env: {} });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
