import { HostError, type Millis, millis, systemClock } from '@switchyard/core';
import { createProber } from '@switchyard/lab';
import type { HealthMoment, PodMoment, RequestRecord, RunRecord } from '../run-record.ts';
import { type App, healthCheckNodePort } from './app.ts';
import { loadDuringRollout } from './load-during-rollout.ts';
import { observeHealth } from './observe-health.ts';
import { endpointMoments, observeSlices, type SliceObserver } from './observe-slices.ts';
import { podMoments } from './pod-moments.ts';
import type { RolloutProgress } from './progress.ts';
import { readLogFile, readSyncs } from './read-logs.ts';
import type { Scene } from './scene.ts';
import { awaitSettled } from './settle.ts';

/**
 * Rolls an app once, observed from all sides; it may have been rolled before, and others may roll beside it. Rejects when a part of
 * the experiment itself failed.
 */
export async function rollOut(
  scene: Scene,
  app: App,
  progress: RolloutProgress,
  signal: AbortSignal,
): Promise<RunRecord> {
  const { stage, settings } = scene;
  const settled = await awaitSettled(scene, app, signal);
  progress.step(`${settled.pod} answers through HAProxy; waiting a moment, so that the health checks' phase is random`);
  await systemClock.sleep(randomPhase(scene), signal);
  const nodePort = await healthCheckNodePort(stage, app, signal);
  await using slices = await observeSlices(stage.api, app, signal);
  await using prober = await createProber(stage.lab.client, signal);
  const health = observeHealth({
    prober,
    nodes: stage.lab.nodes,
    port: nodePort,
    period: millis(100 * Math.max(0.2, settings.timeScale)),
  });
  const startedAt = systemClock.now();
  const requests = await loadDuringRollout(scene, settled, progress, signal);
  await health[Symbol.asyncDispose]();
  return assemble(scene, { app, oldPod: settled.pod, startedAt, requests, health: health.moments, slices });
}

/** At least an interval of the health checks, so that every phase is as likely. */
function randomPhase({ settings }: Scene): Millis {
  const spread = Math.max(5000 * settings.timeScale, settings.healthCheck.interval);
  return millis(1000 * settings.timeScale + spread * Math.random());
}

interface Observed {
  readonly app: App;
  readonly oldPod: string;
  readonly startedAt: Millis;
  readonly requests: readonly RequestRecord[];
  readonly health: readonly HealthMoment[];
  readonly slices: SliceObserver;
}

function assemble({ stage, agents, loadBalancer, settings }: Scene, observed: Observed): RunRecord {
  const { app, startedAt, requests, health } = observed;
  const { states } = observed.slices;
  const nodes = stage.lab.nodes.map((node) => node.name);
  const pods = podMoments(stage.workloadEvents, app.name);
  const [oldPod, newPod] = bothPods(pods, observed.oldPod);
  const deletedAt = pods.find((moment) => moment.pod === oldPod.name && moment.phase === 'deleting')?.at;
  if (deletedAt === undefined) throw new HostError('rollout.events', `no event says that ${oldPod.name} was deleted`);
  const syncs = [...agents.byNode].flatMap(([node, agent]) => readSyncs(readLogFile(agent.logFile), node));
  return {
    settings,
    startedAt,
    endedAt: systemClock.now(),
    nodes,
    oldPod,
    newPod,
    deletedAt,
    requests,
    pods: pods.filter((moment) => [oldPod.name, newPod.name].includes(moment.pod)),
    endpoints: endpointMoments(states, nodes),
    syncs: syncs.sort((a, b) => a.at - b.at),
    health,
    loadBalancer: loadBalancer.momentsOf(app),
    states,
  };
}

type PodPlace = RunRecord['oldPod'];

function bothPods(pods: readonly PodMoment[], oldName: string): readonly [PodPlace, PodPlace] {
  const place = (name: string): PodPlace => ({ name, node: pods.find((moment) => moment.pod === name)?.node ?? '' });
  const newName = pods.findLast((moment) => moment.pod !== oldName && moment.phase === 'ready')?.pod;
  if (newName === undefined) throw new HostError('rollout.events', 'the rollout made no new pod that became ready');
  return [place(oldName), place(newName)];
}
