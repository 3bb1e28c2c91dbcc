import { isDeepStrictEqual } from 'node:util';
import { apiResources, type Deployment, type Pod } from '@switchyard/core/kubernetes';
import { type Millis, millis } from '@switchyard/core';
import type { ControllerContext } from './context.ts';
import {
  inDeletionOrder,
  isPodActive,
  isPodEnded,
  isPodReady,
  isPodTerminating,
  type ReadySince,
  untilAvailable,
} from './facts.ts';
import {
  deploymentStatus,
  type DeploymentStatus,
  isSetAnnounced,
  newSetConditions,
  planRollout,
  progressDeadline,
  type RolloutStep,
} from './deployment-plan.ts';
import { deletePod, podFromTemplate, startOwnerController, templateHash } from './owned-pods.ts';

/**
 * Starts the deployment controller. It creates pods directly, without ReplicaSet objects; the
 * `pod-template-hash` label replaces them.
 */
export function startDeploymentController(
  context: ControllerContext,
  settleSlices: DeploymentWork['settleSlices'],
): AsyncDisposable {
  return startOwnerController(context, {
    kind: 'Deployment',
    resource: apiResources.deployments,
    owners: context.watches.deployments,
    reconcile: (deployment, pods, readySince, signal) =>
      reconcileDeployment({ deployment, pods, context, readySince, settleSlices }, signal),
  });
}

const templateHashLabel = 'pod-template-hash';
const revisionAnnotation = 'deployment.kubernetes.io/revision';

/** Input of one reconcile: the Deployment and the current list of its pods. */
interface DeploymentWork {
  readonly deployment: Deployment;
  readonly pods: readonly Pod[];
  readonly context: ControllerContext;
  readonly readySince: ReadySince;
  /** Resolves when the EndpointSlices show the current state of `pods`. */
  readonly settleSlices: (pods: readonly Pod[]) => Promise<void>;
}

interface Sorted {
  readonly active: readonly Pod[];
  readonly updated: readonly Pod[];
  readonly old: readonly Pod[];
  readonly isAvailable: (pod: Pod) => boolean;
}

/**
 * Takes one step of a rollout: announces a new template, or takes the due step and writes the status from before the step (its
 * effect comes back as pod events, which cause the next reconcile). Resolves with the delay until the next run.
 */
async function reconcileDeployment(work: DeploymentWork, signal: AbortSignal): Promise<Millis | undefined> {
  const { deployment, context } = work;
  const hash = templateHash(deployment.spec?.template ?? { spec: { containers: [] } });
  const setName = `${deployment.metadata.name ?? ''}-${hash}`;
  const isPaused = deployment.spec?.paused === true;
  if (!isPaused && !isSetAnnounced(deployment, setName)) {
    await announce(deployment, setName, context, signal);
    return undefined; // the write comes back as a change of the Deployment
  }
  const sorted = sortPods(work, hash);
  const step = isPaused ? pausedStep(deployment, sorted) : nextStep(work, sorted);
  await takeStep(step, sorted, { ...work, hash }, signal);
  const status = statusBefore(work, sorted, step, setName);
  if (!isDeepStrictEqual(status, deployment.status)) {
    await context.api.updateStatus(apiResources.deployments, { ...deployment, status }, signal);
  }
  return lookAgain(work, sorted, { ...deployment, status });
}

async function announce(
  deployment: Deployment,
  setName: string,
  { api, clock }: ControllerContext,
  signal: AbortSignal,
): Promise<void> {
  const revision = Number(deployment.metadata.annotations?.[revisionAnnotation] ?? 0) + 1;
  const annotations = { ...deployment.metadata.annotations, [revisionAnnotation]: String(revision) };
  const conditions = newSetConditions(deployment, setName, clock.now());
  // A status write takes annotations along, as the real controller's does: one event, not two.
  const next = { ...deployment, metadata: { ...deployment.metadata, annotations } };
  await api.updateStatus(apiResources.deployments, { ...next, status: { ...deployment.status, conditions } }, signal);
}

function sortPods({ deployment, pods, context, readySince }: DeploymentWork, hash: string): Sorted {
  const active = pods.filter(isPodActive);
  const minReady = context.scale.of(deployment.spec?.minReadySeconds ?? 0);
  const isNew = (pod: Pod): boolean => pod.metadata.labels?.[templateHashLabel] === hash;
  const isAvailable = (pod: Pod): boolean =>
    untilAvailable(pod, { readySince, minReady, now: context.clock.now() }) === 0;
  return { active, updated: active.filter(isNew), old: active.filter((pod) => !isNew(pod)), isAvailable };
}

function nextStep({ deployment, pods }: DeploymentWork, { updated, old, isAvailable }: Sorted): RolloutStep {
  const leaving = pods.filter((pod) => isPodTerminating(pod) && !isPodEnded(pod));
  const counts = {
    replicas: deployment.spec?.replicas ?? 1,
    newPods: updated.length,
    newAvailable: updated.filter(isAvailable).length,
    oldPods: old.length,
    oldAvailable: old.filter(isAvailable).length,
    oldRunning: old.length + leaving.length,
  };
  return planRollout(counts, deployment.spec?.strategy);
}

/** A paused Deployment only follows `replicas`, and grows only if its pods have the current template. */
function pausedStep(deployment: Deployment, { active, old }: Sorted): RolloutStep {
  const missing = (deployment.spec?.replicas ?? 1) - active.length;
  const create = old.length === 0 ? Math.max(0, missing) : 0;
  return { create, deleteNew: 0, deleteOld: 0, ...(missing < 0 ? surplus(-missing, old.length) : {}) };
}

function surplus(count: number, old: number): Partial<RolloutStep> {
  return { deleteOld: Math.min(count, old), deleteNew: Math.max(0, count - old) };
}

async function takeStep(
  step: RolloutStep,
  { updated, old, isAvailable }: Sorted,
  work: DeploymentWork & { readonly hash: string },
  signal: AbortSignal,
): Promise<void> {
  const { context } = work;
  for (let made = 0; made < step.create; made++) {
    await context.api.create(apiResources.pods, newPod(work.deployment, work.hash, context), signal);
  }
  const unavailableFirst = [
    ...inDeletionOrder(old.filter((pod) => !isAvailable(pod))),
    ...inDeletionOrder(old.filter(isAvailable)),
  ];
  const going = [...unavailableFirst.slice(0, step.deleteOld), ...inDeletionOrder(updated).slice(0, step.deleteNew)];
  if (going.length === 0) return;
  // The new pods are in the slices as ready before an old one is marked terminating. Real controllers reach
  // this order because their way through ReplicaSets takes longer; the wait here guarantees it.
  await work.settleSlices([...updated, ...old]);
  for (const pod of going) await deletePod(pod, context.api, signal);
}

function newPod(deployment: Deployment, hash: string, { random }: ControllerContext): Pod {
  const generateName = `${deployment.metadata.name ?? ''}-${hash}-`;
  const owner = {
    kind: 'Deployment',
    object: deployment,
    generateName,
    labels: { [templateHashLabel]: hash },
  } as const;
  return podFromTemplate(owner, deployment.spec?.template, random);
}

function statusBefore(
  { deployment, pods, context }: DeploymentWork,
  { active, updated, isAvailable }: Sorted,
  step: RolloutStep,
  setName: string,
): DeploymentStatus {
  const counts = {
    pods: active.length,
    updated: updated.length,
    ready: active.filter(isPodReady).length,
    available: active.filter(isAvailable).length,
    terminating: pods.filter((pod) => isPodTerminating(pod) && !isPodEnded(pod)).length,
    wanted: active.length + step.create - step.deleteNew - step.deleteOld,
  };
  return deploymentStatus(deployment, { counts, setName, now: context.clock.now(), scale: context.scale });
}

/** Returns the delay until the next pod is available or the progress deadline passes. */
function lookAgain(
  { context, readySince, deployment: { spec } }: DeploymentWork,
  { active }: Sorted,
  deployment: Deployment,
): Millis | undefined {
  const now = context.clock.now();
  const minReady = context.scale.of(spec?.minReadySeconds ?? 0);
  const waiting = active.flatMap((pod) => {
    const wait = untilAvailable(pod, { readySince, minReady, now });
    return wait === undefined || wait === 0 ? [] : [wait];
  });
  const deadline = progressDeadline(deployment, context.scale);
  const times = deadline === undefined ? waiting : [...waiting, deadline - now];
  return times.length === 0 ? undefined : millis(Math.max(1, Math.min(...times) + 1));
}
