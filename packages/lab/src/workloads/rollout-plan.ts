import { UsageError } from '@switchyard/core';
import type { Deployment } from '@switchyard/core/kubernetes';

/** The strategy of a Deployment's spec, as the server defaults it. */
export type DeploymentStrategy = NonNullable<NonNullable<Deployment['spec']>['strategy']>;

/** Limits of a rolling update. */
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
