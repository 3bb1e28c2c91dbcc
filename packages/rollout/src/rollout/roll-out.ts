import { type IpFamily, type Millis, millis, systemClock } from '@switchyard/core';
import type { HealthMoment, RunRecord, WatchedLosses } from '../run-record.ts';
import { type App, healthCheckNodePort } from './app.ts';
import { loadDuringRollout, type PathRequests } from './load-during-rollout.ts';
import { movesOf, podMoments } from './pod-moments.ts';
import { observeHealth, endpointMoments, observeSlices, type SliceObserver } from './observe.ts';
import type { RolloutProgress, RolloutSetup } from './rollout-setup.ts';
import type { SiteNode } from './rollout-site.ts';
import { awaitSettled, type LoadTarget, type SettledApp } from './settle.ts';

/** The app to roll, and the paths of requests, at least one. */
export interface RollOutWork {
  readonly app: App;
  readonly targets: readonly LoadTarget[];
  /** Longest time until the app answers by every path before it is rolled. Default 60 s. */
  readonly settleTimeout?: Millis;
  /** Called when it has; the rollout begins when it resolves. */
  readonly onSettled?: (app: SettledApp) => Promise<void>;
}

/**
 * Rolls an app once, with an open loop of requests by each path, observed from all sides: one record per path, in their order. The app may
 * have been rolled before, and others may roll beside it. Rejects when a part of the experiment itself failed.
 */
export async function rollOut(
  setup: RolloutSetup,
  work: RollOutWork,
  progress: RolloutProgress,
  signal: AbortSignal,
): Promise<readonly RunRecord[]> {
  const { experiment, settings } = setup;
  const { app, targets } = work;
  const settled = await awaitSettled(setup, work, signal);
  await work.onSettled?.(settled);
  const names = settled.pods.map(({ name }) => name).join(' and ');
  progress.step(`${names} answers; waiting a moment, so that the health checks' phase is random`);
  await systemClock.sleep(randomPhase(setup), signal);
  const healthPort = await healthCheckNodePort(experiment, app, signal);
  await using slices = await observeSlices(experiment.api, app, signal);
  await using prober = await experiment.outside.openProber(signal);
  const health = observeHealth({
    prober,
    nodes: experiment.nodes,
    port: healthPort,
    ipFamily: targets[0]?.path.ipFamily ?? 'IPv4',
    period: millis(100 * Math.max(0.2, settings.timeScale)),
  });
  const startedAt = systemClock.now();
  const loads = await loadDuringRollout(setup, { app: settled, targets }, progress, signal);
  await health[Symbol.asyncDispose]();
  const packetLosses = await setup.lossWatch?.lossesOf(app, signal);
  const observed = { app: settled, startedAt, health: health.moments, slices, packetLosses };
  return loads.map((load) => recordOf(setup, { ...observed, load }));
}

/** At least an interval of the health checks, so that every phase is as likely. */
function randomPhase({ settings }: RolloutSetup): Millis {
  const spread = Math.max(5000 * settings.timeScale, settings.healthCheck.interval);
  return millis(1000 * settings.timeScale + spread * Math.random());
}

/** The NodePort of a node from outside. `endpoints`: what the external traffic policy lets it use. */
export function nodePortTarget(
  { experiment }: Pick<RolloutSetup, 'experiment'>,
  to: {
    readonly node: SiteNode;
    readonly ipFamily: IpFamily;
    readonly endpoints: 'own' | 'all';
    readonly port: number;
  },
): LoadTarget {
  const { node, ipFamily, endpoints, port } = to;
  const path = {
    kind: 'node',
    name: `outside to ${node.name}`,
    ipFamily,
    node: node.name,
    endpoints,
    frontend: 'nodePort',
  } as const;
  return { path, from: experiment.outside, address: node.addresses[ipFamily] ?? '', port };
}

interface Observed {
  readonly app: SettledApp;
  readonly startedAt: Millis;
  readonly load: PathRequests;
  readonly health: readonly HealthMoment[];
  readonly slices: SliceObserver;
  readonly packetLosses: WatchedLosses | undefined;
}

function recordOf({ experiment, proxies, loadBalancer, settings }: RolloutSetup, observed: Observed): RunRecord {
  const { app, startedAt, health, load, packetLosses } = observed;
  const { path } = load.target;
  const { states } = observed.slices;
  const nodes = experiment.nodes.map((node) => node.name);
  const all = podMoments(experiment.workloadEvents, app.name);
  const moves = movesOf(all, app.pods, app.workload);
  const involved = new Set(moves.flatMap(({ oldPod, newPod }) => [oldPod.name, newPod.name]));
  const isThrough = path.kind === 'loadBalancer' && loadBalancer !== undefined;
  return {
    settings,
    path,
    startedAt,
    endedAt: systemClock.now(),
    nodes,
    moves,
    requests: load.requests,
    pods: all.filter(({ pod }) => involved.has(pod)),
    endpoints: endpointMoments(states, nodes, path.ipFamily),
    syncs: proxies.syncs(),
    health,
    loadBalancer: isThrough ? loadBalancer.momentsOf({ ...app, ipFamily: path.ipFamily }) : [],
    states,
    packetLosses,
  };
}
