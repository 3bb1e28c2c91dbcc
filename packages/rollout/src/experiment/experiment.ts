import { type IpFamily, ConfigError, HostError, millis, type Millis, systemClock } from '@switchyard/core';
import { type Lab, type LabCluster, startCluster, type WorkloadEvent, type LabProcess } from '@switchyard/lab';
import { dataplaneNamed } from '@switchyard/scenarios';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readLogFile, readSyncs } from '../rollout/read-logs.ts';
import type { Proxies } from '../rollout/rollout-setup.ts';
import { labSite, type RolloutSite } from '../rollout/rollout-site.ts';
import type { RunSettings } from '../run-record.ts';

/** Environment of an experiment: a lab of two nodes with an API server and controllers. Several rollouts may run on it, one after the other. */
export interface Experiment extends RolloutSite {
  readonly lab: Lab;
  readonly cluster: LabCluster;
}

/** An experiment with a lab of its own. */
export interface OwnedExperiment extends Experiment, AsyncDisposable {}

export interface ExperimentOptions {
  readonly name: string;
  /** Factor of all durations of pods; 1 is real time. */
  readonly timeScale: number;
  /** Default IPv4. */
  readonly ipFamilies?: readonly IpFamily[];
}

/** Builds a lab of two nodes with an API server and controllers, without agents and load balancer. */
export async function createExperiment(options: ExperimentOptions, signal: AbortSignal): Promise<OwnedExperiment> {
  const workloadEvents: WorkloadEvent[] = [];
  const cluster = await startCluster(
    {
      name: options.name,
      nodes: 2,
      ipFamilies: options.ipFamilies ?? ['IPv4'],
      hasDaemonSets: true,
      timeScale: options.timeScale,
      onWorkloadEvent: (event) => void workloadEvents.push(event),
    },
    signal,
  );
  return {
    lab: cluster.lab,
    ...labSite(cluster.lab),
    api: cluster.api,
    cluster,
    workloadEvents,
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}

/** The node agents, one per node. Disposing stops them; what they programmed stays until the next ones take it over. */
export interface Agents extends Proxies, AsyncDisposable {}

/** Starts an agent on every node and waits until all are healthy. */
export async function startAgents(
  experiment: Experiment,
  settings: Pick<RunSettings, 'proxyMode' | 'terminatingFallback' | 'timeScale'>,
  signal: AbortSignal,
): Promise<Agents> {
  const args = [
    `--switchyard-terminating-fallback=${settings.terminatingFallback ? 'on' : 'off'}`,
    // kube-proxy's default of a second is a duration like the others.
    ...(dataplaneNamed(settings.proxyMode).defaultMinSyncPeriod === 'kubeProxy'
      ? [`--iptables-min-sync-period=${Math.round(1000 * settings.timeScale)}ms`]
      : []),
  ];
  const started = await experiment.cluster.startAgents(
    { proxyMode: settings.proxyMode, args, program: programPath('switchyard-agent') },
    signal,
  );
  return {
    programs: started,
    syncs: () =>
      started
        .flatMap(({ logFile }, index) => readSyncs(readLogFile(logFile), experiment.lab.nodes[index]?.name ?? ''))
        .sort((a, b) => a.at - b.at),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(started.map((agent) => agent.stop()));
    },
  };
}

/** Absolute path of a program of this checkout; the experiment runs the apps as an operator would. */
export function programPath(name: 'switchyard-agent' | 'switchyard-lb'): string {
  const app = name === 'switchyard-agent' ? 'node-agent' : 'kind-lb-controller';
  const path = fileURLToPath(new URL(`../../../../apps/${app}/bin/${name}`, import.meta.url));
  const bundle = fileURLToPath(new URL(`../../../../apps/${app}/dist-bundle/main.mjs`, import.meta.url));
  if (!existsSync(bundle))
    throw new ConfigError('rollout.notBuilt', `${name} is not built: ${bundle} is missing; run ./dev build`);
  return path;
}

/** Limits of a wait. */
export interface WaitOptions {
  readonly timeout: Millis;
  readonly programs: readonly LabProcess[];
  readonly signal: AbortSignal;
  /** Code of the error when the time is over. Default `rollout.timeout`. */
  readonly code?: string;
}

/**
 * Polls until `probe` returns something, and returns that. Rejects after `timeout`, saying what was waited for, or at
 * once when one of `programs` has ended meanwhile, naming its log.
 */
export async function awaitCondition<T>(
  what: string,
  probe: () => Promise<T | undefined>,
  options: WaitOptions,
): Promise<T> {
  const end = systemClock.monotonic() + options.timeout;
  let ended: LabProcess | undefined;
  for (const program of options.programs) void program.ended.then(() => (ended = program));
  for (;;) {
    const found = await probe();
    if (found !== undefined) return found;
    if (ended !== undefined) {
      throw new HostError(
        'rollout.ended',
        `waiting for ${what}: a program of the experiment has ended (${String(await ended.ended)}); its log: ${ended.logFile}`,
      );
    }
    if (systemClock.monotonic() > end) {
      const logs = options.programs.map((program) => program.logFile).join(', ');
      throw new HostError(
        options.code ?? 'rollout.timeout',
        `waited ${options.timeout / 1000} s for ${what} in vain; logs: ${logs}`,
      );
    }
    await systemClock.sleep(millis(50), options.signal);
  }
}
