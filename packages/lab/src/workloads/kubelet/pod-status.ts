import { constants } from 'node:os';
import type { IpAddress, Millis } from '@switchyard/core';
import type { Condition, Pod } from '@switchyard/core/kubernetes';
import { apiTime, findCondition } from '../facts.ts';

export type PodStatus = NonNullable<Pod['status']>;

export type ContainerState =
  | { readonly kind: 'waiting'; readonly reason: string; readonly message?: string }
  | { readonly kind: 'running'; readonly startedAt: Millis }
  | {
      readonly kind: 'ended';
      readonly startedAt: Millis;
      readonly endedAt: Millis;
      /** Exit code, or the name of the signal that ended it. */
      readonly result: number | string;
    };

export interface ContainerView {
  readonly name: string;
  readonly image: string;
  readonly state: ContainerState;
  readonly isReady: boolean;
  readonly restartCount: number;
}

export interface PodView {
  readonly containers: readonly ContainerView[];
  /** Empty until the pod's namespace exists. */
  readonly podIps: readonly IpAddress[];
  readonly hostIps: readonly IpAddress[];
  /** No container will run again: the phase becomes Succeeded or Failed. */
  readonly isOver: boolean;
  readonly now: Millis;
}

/**
 * The status that a kubelet would write. Conditions of other writers are kept, and `lastTransitionTime` moves only when
 * a condition's status does (clients measure latency by that of Ready).
 */
export function podStatus(pod: Pod, view: PodView): PodStatus {
  const before: PodStatus = pod.status ?? {};
  const { containers, podIps, hostIps } = view;
  const wasStarted = containers.some(({ state }) => state.kind !== 'waiting' || state.reason === crashLoop);
  const next: PodStatus = {
    ...before,
    phase: phaseOf(view, wasStarted),
    conditions: conditionsOf(pod, view),
    containerStatuses: containers.map(containerStatus),
  };
  if (hostIps[0] === undefined) return next;
  const placed: PodStatus = {
    ...next,
    hostIP: hostIps[0],
    hostIPs: hostIps.map((ip) => ({ ip })),
    startTime: before.startTime ?? apiTime(view.now),
  };
  return podIps[0] === undefined ? placed : { ...placed, podIP: podIps[0], podIPs: podIps.map((ip) => ({ ip })) };
}

/** Reason of a container that waits for its restart. */
export const crashLoop = 'CrashLoopBackOff';

/** Returns the exit code for the end of a process: 128 plus the number for signals. */
export function exitCodeOf(result: number | string): number {
  if (typeof result === 'number') return result;
  return 128 + (Object.entries(constants.signals).find(([name]) => name === result)?.[1] ?? 0);
}

function phaseOf({ isOver, containers }: PodView, wasStarted: boolean): NonNullable<PodStatus['phase']> {
  if (!isOver) return wasStarted ? 'Running' : 'Pending';
  const hasFailed = containers.some(({ state }) => state.kind !== 'ended' || exitCodeOf(state.result) !== 0);
  return hasFailed ? 'Failed' : 'Succeeded';
}

function conditionsOf(pod: Pod, view: PodView): readonly Condition[] {
  const unready = view.containers.filter(({ isReady }) => !isReady).map(({ name }) => name);
  const hasNamespace = view.podIps.length > 0;
  const why = view.isOver
    ? { reason: 'PodCompleted' }
    : { reason: 'ContainersNotReady', message: `containers with unready status: [${unready.join(' ')}]` };
  const gates = (pod.spec?.readinessGates ?? []).map(({ conditionType }) => conditionType);
  const closed = gates.filter((gate) => findCondition(pod.status?.conditions, gate)?.status !== 'True');
  const gateWhy = { reason: 'ReadinessGatesNotReady', message: `readiness gates not passed: [${closed.join(' ')}]` };
  const areReady = unready.length === 0;
  const wanted: readonly (Pick<Condition, 'type' | 'reason' | 'message'> & { readonly isTrue: boolean })[] = [
    { type: 'PodReadyToStartContainers', isTrue: hasNamespace },
    { type: 'Initialized', isTrue: true },
    { type: 'Ready', isTrue: areReady && closed.length === 0, ...(areReady ? gateWhy : why) },
    { type: 'ContainersReady', isTrue: areReady, ...why },
    { type: 'PodScheduled', isTrue: true },
  ];
  const before = pod.status?.conditions ?? [];
  const own = wanted.map(({ isTrue, type, reason, message }): Condition => {
    const status = isTrue ? 'True' : 'False';
    const current = findCondition(before, type);
    const since = current?.status === status ? current.lastTransitionTime : undefined;
    return {
      type,
      status,
      lastProbeTime: null,
      lastTransitionTime: since ?? apiTime(view.now),
      ...(isTrue || reason === undefined ? {} : { reason }),
      ...(isTrue || message === undefined ? {} : { message }),
    };
  });
  return [...own, ...before.filter(({ type }) => !own.some((condition) => condition.type === type))];
}

function containerStatus(view: ContainerView): NonNullable<PodStatus['containerStatuses']>[number] {
  const { name, image, isReady, restartCount, state } = view;
  return { name, image, imageID: image, ready: isReady, restartCount, state: containerState(state) };
}

function containerState(state: ContainerState): Readonly<Record<string, unknown>> {
  switch (state.kind) {
    case 'waiting': {
      const message = state.message === undefined ? {} : { message: state.message };
      return { waiting: { reason: state.reason, ...message } };
    }
    case 'running':
      return { running: { startedAt: apiTime(state.startedAt) } };
    case 'ended': {
      const exitCode = exitCodeOf(state.result);
      const times = { startedAt: apiTime(state.startedAt), finishedAt: apiTime(state.endedAt) };
      return { terminated: { exitCode, reason: exitCode === 0 ? 'Completed' : 'Error', ...times } };
    }
  }
}
