import { type Millis, millis, UsageError } from '@switchyard/core';
import type { Condition, Deployment } from '@switchyard/core/kubernetes';
import { apiTime, findCondition, parseApiTime, replaceCondition, type TimeScale, withCondition } from './facts.ts';

/** The strategy of a Deployment's spec, as the server defaults it. */
export type DeploymentStrategy = NonNullable<NonNullable<Deployment['spec']>['strategy']>;

export interface RolloutLimits {
  /** Pods above `replicas`. */
  readonly surge: number;
  /** Pods below `replicas` that need not be available. */
  readonly unavailable: number;
}

/**
 * The limits of a RollingUpdate strategy in pods. Percentages of `replicas` are rounded up for surge and down for
 * unavailable; when both become 0, unavailable is 1, because the rollout could not progress otherwise.
 */
export function rolloutLimits(strategy: DeploymentStrategy | undefined, replicas: number): RolloutLimits {
  const rolling = strategy?.rollingUpdate;
  const surge = scaledCount(rolling?.maxSurge ?? '25%', replicas, Math.ceil);
  const unavailable = scaledCount(rolling?.maxUnavailable ?? '25%', replicas, Math.floor);
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

/** A number of pods, or a percentage of `all` of them. */
export function scaledCount(value: number | string, all: number, round: (value: number) => number): number {
  if (typeof value === 'number') return value;
  const percent = /^(\d+)%$/.exec(value)?.[1];
  if (percent === undefined) {
    throw new UsageError('workloads.percent', `not a number of pods or a percentage: ${JSON.stringify(value)}`);
  }
  return round((Number(percent) * all) / 100);
}

/** Numbers of a Deployment's pods. `pods` are neither terminating nor ended. */
export interface RolloutCounts {
  readonly replicas: number;
  readonly newPods: number;
  readonly newAvailable: number;
  readonly oldPods: number;
  readonly oldAvailable: number;
  /** Old pods whose processes may still run: `oldPods` and the terminating ones. Only Recreate waits for them. */
  readonly oldRunning: number;
}

/** Next step. At most one of the three is above 0; all are 0 if the rollout waits for a pod. */
export interface RolloutStep {
  readonly create: number;
  readonly deleteNew: number;
  readonly deleteOld: number;
}

const nothing: RolloutStep = { create: 0, deleteNew: 0, deleteOld: 0 };

/**
 * The next step of a rollout, like that of Kubernetes' deployment controller: creates new pods as far as surge
 * allows. If none may be created, deletes old ones as far as availability allows, unavailable ones
 * first. Steady state is a rollout without old pods.
 */
export function planRollout(counts: RolloutCounts, strategy: DeploymentStrategy | undefined): RolloutStep {
  const { replicas, newPods, oldPods } = counts;
  if (newPods > replicas) return { ...nothing, deleteNew: newPods - replicas };
  if (strategy?.type === 'Recreate') {
    if (oldPods > 0) return { ...nothing, deleteOld: oldPods };
    return { ...nothing, create: counts.oldRunning > 0 ? 0 : replicas - newPods };
  }
  const limits = rolloutLimits(strategy, replicas);
  const room = replicas + limits.surge - newPods - oldPods;
  const create = Math.max(0, Math.min(room, replicas - newPods));
  if (create > 0) return { ...nothing, create };
  return { ...nothing, deleteOld: oldPodsToDelete(counts, replicas - limits.unavailable) };
}

function oldPodsToDelete(counts: RolloutCounts, minAvailable: number): number {
  const newUnavailable = counts.newPods - counts.newAvailable;
  const dispensable = counts.newPods + counts.oldPods - minAvailable - newUnavailable;
  if (counts.oldPods === 0 || dispensable <= 0) return 0;
  const unhealthy = Math.min(dispensable, counts.oldPods - counts.oldAvailable);
  const surplus = Math.max(0, counts.newAvailable + counts.oldAvailable - minAvailable);
  return unhealthy + Math.min(surplus, counts.oldPods - unhealthy);
}

export type DeploymentStatus = NonNullable<Deployment['status']>;

/** Numbers of a Deployment's pods before a step, and the number after it. */
interface DeploymentCounts {
  /** Neither terminating nor ended. */
  readonly pods: number;
  /** Of these, created from the current template. */
  readonly updated: number;
  readonly ready: number;
  readonly available: number;
  readonly terminating: number;
  /** Number of pods after the step; in Kubernetes the sum of the ReplicaSets' `spec.replicas`. */
  readonly wanted: number;
}

export interface StatusInput {
  readonly counts: DeploymentCounts;
  /** Deployment name, dash, pod-template hash: the name that its ReplicaSet would have. */
  readonly setName: string;
  readonly now: Millis;
  readonly scale: TimeScale;
}

const progressing = 'Progressing';

/**
 * The status that Kubernetes' deployment controller would write, counters of 0 omitted except `terminatingReplicas`
 * (Kubernetes 1.36). `kubectl rollout status` ends when observedGeneration has caught up and
 * updated = replicas = available.
 */
export function deploymentStatus(deployment: Deployment, input: StatusInput): DeploymentStatus {
  const { counts, now } = input;
  const replicas = deployment.spec?.replicas ?? 1;
  const limits = rolloutLimits(deployment.spec?.strategy, replicas);
  const unavailableAllowed =
    deployment.spec?.strategy?.type === 'Recreate' ? 0 : Math.min(limits.unavailable, replicas);
  const isAvailable = counts.available >= replicas - unavailableAllowed;
  const available = availableCondition(isAvailable, now);
  const before = deployment.status?.conditions ?? [];
  const numbers = {
    observedGeneration: deployment.metadata.generation ?? 0,
    ...unlessZero('replicas', counts.pods),
    ...unlessZero('updatedReplicas', counts.updated),
    ...unlessZero('readyReplicas', counts.ready),
    ...unlessZero('availableReplicas', counts.available),
    ...unlessZero('unavailableReplicas', Math.max(0, counts.wanted - counts.available)),
    terminatingReplicas: counts.terminating,
  };
  const conditions = withProgress(deployment, withCondition(before, available), input);
  return { ...numbers, conditions };
}

/** Returns the conditions for a new template, before any of its pods exists. */
export function newSetConditions(deployment: Deployment, setName: string, now: Millis): readonly Condition[] {
  const message = `Created new replica set "${setName}"`;
  return replaceCondition(
    deployment.status?.conditions ?? [],
    progressCondition('True', 'NewReplicaSetCreated', message, now),
  );
}

/** Whether the Deployment's status names `setName`; it is the only record of the last template. */
export function isSetAnnounced(deployment: Deployment, setName: string): boolean {
  return findCondition(deployment.status?.conditions, progressing)?.message?.includes(`"${setName}"`) ?? false;
}

/** Time at which the rollout exceeds `progressDeadlineSeconds`; undefined if it is complete. */
export function progressDeadline(deployment: Deployment, scale: TimeScale): Millis | undefined {
  const condition = findCondition(deployment.status?.conditions, progressing);
  const since = parseApiTime(condition?.lastUpdateTime);
  if (since === undefined || condition?.reason === 'NewReplicaSetAvailable' || condition?.status === 'False') {
    return undefined;
  }
  // The time of the condition is rounded down by up to a second.
  return millis(since + 1000 + scale.of(deployment.spec?.progressDeadlineSeconds ?? 600));
}

function withProgress(
  deployment: Deployment,
  conditions: readonly Condition[],
  { counts, setName, now, scale }: StatusInput,
): readonly Condition[] {
  const replicas = deployment.spec?.replicas ?? 1;
  const current = findCondition(conditions, progressing);
  const wasComplete = counts.pods === counts.updated && current?.reason === 'NewReplicaSetAvailable';
  if (wasComplete) return conditions;
  if (counts.updated === replicas && counts.pods === replicas && counts.available >= replicas) {
    const message = `ReplicaSet "${setName}" has successfully progressed.`;
    return withCondition(conditions, progressCondition('True', 'NewReplicaSetAvailable', message, now));
  }
  if (hasProgressed(deployment.status ?? {}, counts)) {
    const message = `ReplicaSet "${setName}" is progressing.`;
    return replaceCondition(conditions, progressCondition('True', 'ReplicaSetUpdated', message, now));
  }
  const deadline = progressDeadline(deployment, scale);
  if (deadline !== undefined && now > deadline) {
    const message = `ReplicaSet "${setName}" has timed out progressing.`;
    return withCondition(conditions, progressCondition('False', 'ProgressDeadlineExceeded', message, now));
  }
  return conditions;
}

function hasProgressed(before: DeploymentStatus, counts: DeploymentCounts): boolean {
  const oldBefore = (before.replicas ?? 0) - (before.updatedReplicas ?? 0);
  return (
    counts.updated > (before.updatedReplicas ?? 0) ||
    counts.pods - counts.updated < oldBefore ||
    counts.ready > (before.readyReplicas ?? 0) ||
    counts.available > (before.availableReplicas ?? 0)
  );
}

function availableCondition(isAvailable: boolean, now: Millis): Condition {
  const at = apiTime(now);
  return {
    type: 'Available',
    status: isAvailable ? 'True' : 'False',
    lastUpdateTime: at,
    lastTransitionTime: at,
    reason: isAvailable ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable',
    message: `Deployment ${isAvailable ? 'has' : 'does not have'} minimum availability.`,
  };
}

function progressCondition(status: 'True' | 'False', reason: string, message: string, now: Millis): Condition {
  const at = apiTime(now);
  return { type: progressing, status, lastUpdateTime: at, lastTransitionTime: at, reason, message };
}

/** `{ key: value }`, or nothing for 0. */
export function unlessZero<K extends string>(key: K, value: number): Partial<Record<K, number>> {
  return value === 0 ? {} : ({ [key]: value } as Partial<Record<K, number>>);
}
