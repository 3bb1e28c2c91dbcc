import { dirname } from 'node:path';
import { dockerPackages, joinDockerNetwork, startDockerEngine } from '@switchyard/lab';
import { runLoadBalancer, settingArgs } from './load-balancer.ts';
import type { LoadBalancerHost } from './load-balancer-host.ts';
import type { Experiment } from './experiment.ts';
import { runTool } from './tools.ts';

/** Name of the cluster for the controller. */
const cluster = 'lab';

/**
 * Starts a real Docker Engine in the lab's load-balancer host, from Debian's docker.io as `tools/debian` unpacks it, joins its network
 * `kind` to the lab, and builds the load balancer's image there from local layers. Needs no engine on this machine, and does not use one.
 */
export async function startDockerHost(
  experiment: Experiment,
  report: (text: string) => void,
  signal: AbortSignal,
): Promise<LoadBalancerHost> {
  const { lab } = experiment;
  const { packages, exclude } = dockerPackages;
  const excluded = exclude.map((name) => `--exclude=${name}`);
  const programs = await runTool({ tool: 'debian/fetch.ts', args: [...excluded, ...packages] }, signal);
  await using stack = new AsyncDisposableStack();
  const engine = stack.use(await startDockerEngine({ lab, host: lab.loadBalancer, programs }, signal));
  report(`Docker Engine ${engine.version} runs in the load-balancer host`);
  stack.use(await joinDockerNetwork({ lab, host: lab.loadBalancer, engine, isAutomatic: true }, signal));
  const { file } = engine.command;
  const env = { ...engine.command.env, PATH: `${dirname(file)}:${process.env['PATH'] ?? ''}` };
  report('building the image switchyard/load-balancer from local layers');
  await runTool({ tool: 'images/image.ts', args: ['load-balancer', '--local-base'], env }, signal);
  const owned = stack.move();
  const runtime = ['--runtime=docker', `--cluster=${cluster}`];
  return {
    start: (settings) => runLoadBalancer(experiment, { args: [...runtime, ...settingArgs(settings)], env }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
