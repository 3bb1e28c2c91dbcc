import { InvariantError } from '@switchyard/core';
import type { RunRecord, RunSettings } from '../run-record.ts';
import { startAgents, createExperiment } from '../experiment/experiment.ts';
import { prepareLoadBalancerHost } from '../experiment/load-balancer.ts';
import { watchLosses } from '../experiment/loss-watch.ts';
import { deployApp } from './app.ts';
import type { RolloutProgress } from './rollout-setup.ts';
import { rollOut } from './roll-out.ts';
import { loadBalancerTarget } from './settle.ts';

/** One rolling update in a fresh lab, observed from all sides. Rejects when a part of the experiment itself failed. */
export async function runRollout(
  options: { readonly labName: string; readonly settings: RunSettings },
  progress: RolloutProgress,
  signal: AbortSignal,
): Promise<RunRecord> {
  const { settings } = options;
  const { timeScale, delayShutdown } = settings;
  progress.step('setting up two nodes, an API server, two agents and HAProxy');
  await using experiment = await createExperiment({ name: options.labName, timeScale }, signal);
  await using agents = await startAgents(experiment, settings, signal);
  const { runtime } = settings;
  await using host = await prepareLoadBalancerHost(
    experiment,
    { runtime, report: (text) => progress.step(text) },
    signal,
  );
  await using loadBalancer = host.start(settings);
  const app = await deployApp(experiment, { name: 'zeroapp', port: 80, delayShutdown }, timeScale, signal);
  await using lossWatch = watchLosses(experiment);
  const setup = { experiment, proxies: agents, loadBalancer, settings, lossWatch };
  const targets = [await loadBalancerTarget(setup, app, 'IPv4', signal)];
  const [run] = await rollOut(setup, { app, targets }, progress, signal);
  if (run === undefined) throw new InvariantError('a rollout with one path has no record');
  return run;
}
