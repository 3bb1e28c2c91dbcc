import { millis } from '@switchyard/core';
import { healthCheckOf, type Profile } from '../../src/profiles.ts';
import { type App, deployApp } from '../../src/rollout/app.ts';
import { type RolloutProgress, silentProgress, type RolloutSetup } from '../../src/rollout/rollout-setup.ts';
import { rollOut } from '../../src/rollout/roll-out.ts';
import { loadBalancerTarget } from '../../src/rollout/settle.ts';
import type { RunRecord, RunSettings } from '../../src/run-record.ts';
import { type Agents, startAgents, createExperiment, type Experiment } from '../../src/experiment/experiment.ts';
import { type LoadBalancerHost, prepareLoadBalancerHost } from '../../src/experiment/load-balancer.ts';

/** Measurement plan: one rollout for every profile, with the fallback off and on, and every drain time. */
export interface ProfileMeasurement {
  readonly labName: string;
  readonly profiles: readonly Profile[];
  /** Of the terminating fallback. */
  readonly fallbacks: readonly boolean[];
  /** Seconds that the app serves after SIGTERM, unscaled. */
  readonly drains: readonly number[];
  /** Rollouts of each. */
  readonly rounds: number;
  readonly fastDrain: boolean;
  readonly proxyMode: RunSettings['proxyMode'];
  readonly runtime: RunSettings['runtime'];
  readonly timeScale: number;
  /** Requests per second as the clients of an unscaled experiment would send them: losses are then those of real time. */
  readonly rate: number;
}

/** One rollout of the table. */
export interface MeasuredRollout {
  readonly profile: Profile;
  /** Seconds, unscaled. */
  readonly drain: number;
  readonly run: RunRecord;
}

const firstPort = 80;

/**
 * Measures them all on one experiment: an app per drain time, rolled side by side behind the same load balancer, which restarts for each
 * profile. Yields each group when it is done.
 */
export async function* measureProfiles(
  options: ProfileMeasurement,
  progress: Pick<RolloutProgress, 'step'>,
  signal: AbortSignal,
): AsyncGenerator<readonly MeasuredRollout[]> {
  const { timeScale } = options;
  await using experiment = await createExperiment({ name: options.labName, timeScale }, signal);
  const { runtime } = options;
  await using host = await prepareLoadBalancerHost(
    experiment,
    { runtime, report: (text) => progress.step(text) },
    signal,
  );
  const apps = await deployApps(experiment, options, signal);
  for (const terminatingFallback of options.fallbacks) {
    const settings = { proxyMode: options.proxyMode, terminatingFallback, timeScale };
    await using agents = await startAgents(experiment, settings, signal);
    for (const profile of options.profiles) {
      progress.step(`${profile.name}, fallback ${terminatingFallback ? 'on' : 'off'}`);
      yield* measureProfile({ ...options, experiment, host, agents, apps, profile, terminatingFallback }, signal);
    }
  }
}

type DrainingApp = App & { readonly drain: number };

interface OneProfile extends ProfileMeasurement {
  readonly experiment: Experiment;
  readonly host: LoadBalancerHost;
  readonly agents: Agents;
  readonly apps: readonly DrainingApp[];
  readonly profile: Profile;
  readonly terminatingFallback: boolean;
}

async function* measureProfile(options: OneProfile, signal: AbortSignal): AsyncGenerator<readonly MeasuredRollout[]> {
  const { experiment, agents, profile } = options;
  const settings = settingsOf(options);
  await using loadBalancer = options.host.start(settings);
  for (let round = 0; round < options.rounds; round++) {
    const measured = await Promise.all(
      options.apps.map(async (app) => {
        const delayShutdown = millis(app.drain * 1000 * options.timeScale);
        const setup: RolloutSetup = {
          experiment,
          proxies: agents,
          loadBalancer,
          settings: { ...settings, delayShutdown },
        };
        const targets = [await loadBalancerTarget(setup, app, 'IPv4', signal)];
        const runs = await rollOut(setup, { app, targets }, silentProgress, signal);
        return runs.map((run) => ({ profile, drain: app.drain, run }));
      }),
    );
    yield measured.flat();
  }
}

function settingsOf(options: OneProfile): RunSettings {
  const { profile, timeScale, terminatingFallback, proxyMode, runtime, fastDrain } = options;
  return {
    terminatingFallback,
    proxyMode,
    rate: options.rate / timeScale,
    requestTimeout: millis(500),
    healthCheck: healthCheckOf(profile, {}, timeScale),
    runtime,
    fastDrain,
    delayShutdown: millis(0),
    timeScale,
  };
}

/** An app per drain time, each on a port of its own: load balancers that are a process share one address. */
async function deployApps(
  experiment: Experiment,
  { drains, timeScale }: ProfileMeasurement,
  signal: AbortSignal,
): Promise<readonly DrainingApp[]> {
  const apps: DrainingApp[] = [];
  for (const [index, drain] of drains.entries()) {
    const delayShutdown = millis(drain * 1000 * timeScale);
    const app = await deployApp(
      experiment,
      { name: `app${index}`, port: firstPort + index, delayShutdown },
      timeScale,
      signal,
    );
    apps.push({ ...app, drain });
  }
  return apps;
}
