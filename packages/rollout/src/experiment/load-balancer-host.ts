import { systemClock } from '@switchyard/core';
import type { RunSettings } from '../run-record.ts';
import { startDockerHost } from './docker-host.ts';
import { type LoadBalancer, type LoadBalancerSettings, runLoadBalancer, settingArgs } from './load-balancer.ts';
import type { Experiment } from './experiment.ts';

/** The lab's load-balancer host, ready to run load balancers one after the other. Disposing it comes after theirs. */
export interface LoadBalancerHost extends AsyncDisposable {
  start(settings: LoadBalancerSettings): LoadBalancer;
}

/** Prepares the host for a runtime. `docker` starts a Docker Engine there, builds the image and reports progress to `report`; rejects with what is missing. */
export async function prepareLoadBalancerHost(
  experiment: Experiment,
  options: { readonly runtime: RunSettings['runtime']; readonly report: (text: string) => void },
  signal: AbortSignal,
): Promise<LoadBalancerHost> {
  if (options.runtime === 'docker') return startDockerHost(experiment, options.report, signal);
  return {
    start: (settings) => {
      const { lab } = experiment;
      // A folder of its own: with an earlier one it would continue with the stored node states, and log no event.
      const place = lab.ipFamilies.map((family) => `--address=${lab.loadBalancer.addresses[family]}`);
      place.push(`--run-directory=${lab.folder}/lb${Math.round(systemClock.now())}`);
      return runLoadBalancer(experiment, { args: ['--runtime=process', ...place, ...settingArgs(settings)], env: {} });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
