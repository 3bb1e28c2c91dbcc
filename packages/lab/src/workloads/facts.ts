import { type Clock, type Millis, millis, UsageError } from '@switchyard/core';
import type { ApiObject, Condition, LabelSelector, OwnerReference, Pod } from '@switchyard/core/kubernetes';
import type { ResourceWatch } from './context.ts';

/**
 * Factor of the durations in manifests. It scales the lab's own waits (probes, `preStop`, grace periods,
 * `minReadySeconds`, crash back-off) and the echo server's `--delay-shutdown`; it never changes objects in the API.
 */
export interface TimeScale {
  /** 1 is real time, 0.1 is ten times as fast. */
  readonly factor: number;
  /** `seconds` of a manifest as the time to wait. */
  of(seconds: number): Millis;
}

/** Throws `UsageError` unless `factor` is in (0, 1]. */
export function timeScale(factor: number): TimeScale {
  if (!(factor > 0 && factor <= 1)) {
    throw new UsageError('workloads.time-scale', `not a time scale: ${factor}; use a number above 0 and at most 1`);
  }
  return { factor, of: (seconds) => millis(seconds * 1000 * factor) };
}

/** An instant as the API writes it: RFC 3339 in whole seconds, rounded down. */
export function apiTime(instant: Millis): string {
  return `${new Date(instant).toISOString().slice(0, 19)}Z`;
}

/** The instant of an API time; an absent time is undefined. */
export function parseApiTime(text: string | null | undefined): Millis | undefined {
  return text === undefined || text === null ? undefined : millis(Date.parse(text));
}

/** The condition of that type, or undefined. */
export function findCondition(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/**
 * `conditions` with `next` in place of the condition of its type, moved to the end; its `lastTransitionTime` is kept
 * while the status stays the same. Returns the same list if status and reason are equal,
 * as the real controllers do: a new message or time alone causes no write.
 */
export function withCondition(conditions: readonly Condition[], next: Condition): readonly Condition[] {
  const current = findCondition(conditions, next.type);
  if (current?.status === next.status && current.reason === next.reason) return conditions;
  return replaceCondition(conditions, next);
}

/** Like `withCondition`, but also replaces a condition with equal status and reason. */
export function replaceCondition(conditions: readonly Condition[], next: Condition): readonly Condition[] {
  const current = findCondition(conditions, next.type);
  const kept =
    current?.status === next.status && typeof current.lastTransitionTime === 'string'
      ? { ...next, lastTransitionTime: current.lastTransitionTime }
      : next;
  return [...conditions.filter(({ type }) => type !== next.type), kept];
}

export type Labels = Readonly<Record<string, string>>;

/** Whether all of `wanted` are among `labels`. Empty `wanted` matches everything. */
export function matchesLabels(wanted: Labels, labels: Labels | undefined): boolean {
  return Object.entries(wanted).every(([key, value]) => labels?.[key] === value);
}

/** Whether `labels` satisfy the selector. An absent selector matches nothing, an empty one everything. */
export function matchesSelector(selector: LabelSelector | undefined, labels: Labels | undefined): boolean {
  if (selector === undefined) return false;
  if (!matchesLabels(selector.matchLabels ?? {}, labels)) return false;
  return (selector.matchExpressions ?? []).every(({ key, operator, values }) => {
    const value = labels?.[key];
    switch (operator) {
      case 'In':
        return value !== undefined && (values ?? []).includes(value);
      case 'NotIn':
        return value === undefined || !(values ?? []).includes(value);
      case 'Exists':
        return value !== undefined;
      case 'DoesNotExist':
        return value === undefined;
      default:
        return false;
    }
  });
}

/** Labels in the text form of a `labelSelector` parameter. */
export function selectorText(labels: Labels): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}

/** The object's name; '' before it has one. */
export function nameOf(object: ApiObject): string {
  return object.metadata.name ?? '';
}

/** `namespace/name` of a namespaced object. */
export function objectKey(object: ApiObject): string {
  return `${object.metadata.namespace ?? 'default'}/${nameOf(object)}`;
}

/** The two parts of `objectKey`. */
export function splitKey(key: string): { readonly namespace: string; readonly name: string } {
  const slash = key.indexOf('/');
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

export function isPodReady(pod: Pod): boolean {
  return findCondition(pod.status?.conditions, 'Ready')?.status === 'True';
}

export function isPodTerminating(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined;
}

/** Whether all containers have ended and will not restart: phase Succeeded or Failed. */
export function isPodEnded(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

/** Whether a controller counts the pod as a replica: neither ended nor terminating. */
export function isPodActive(pod: Pod): boolean {
  return !isPodEnded(pod) && !isPodTerminating(pod);
}

/** Time of the last change of Ready, in whole seconds; undefined before its first status. */
export function readyTransition(pod: Pod): Millis | undefined {
  return parseApiTime(findCondition(pod.status?.conditions, 'Ready')?.lastTransitionTime);
}

export function controllerOf(object: ApiObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true);
}

/**
 * Sorts pods in the order of their deletion by a controller: without a node, Pending, not ready, on a node with more
 * siblings, ready for a shorter time, younger, then by name.
 */
export function inDeletionOrder(pods: readonly Pod[]): readonly Pod[] {
  const perNode = new Map<string, number>();
  for (const pod of pods) {
    const node = pod.spec?.nodeName ?? '';
    perNode.set(node, (perNode.get(node) ?? 0) + 1);
  }
  const rank = (pod: Pod): readonly number[] => [
    pod.spec?.nodeName === undefined ? 0 : 1,
    pod.status?.phase === 'Running' ? 1 : 0,
    isPodReady(pod) ? 1 : 0,
    -(perNode.get(pod.spec?.nodeName ?? '') ?? 0),
    -(readyTransition(pod) ?? 0),
    -Date.parse(pod.metadata.creationTimestamp ?? '1970-01-01T00:00:00Z'),
  ];
  return pods
    .map((pod) => ({ pod, rank: rank(pod) }))
    .sort(
      (a, b) => compareRanks(a.rank, b.rank) || (a.pod.metadata.name ?? '').localeCompare(b.pod.metadata.name ?? ''),
    )
    .map(({ pod }) => pod);
}

function compareRanks(left: readonly number[], right: readonly number[]): number {
  for (const [index, value] of left.entries()) {
    const difference = value - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Time at which the watch saw a pod become ready (the API has whole seconds only); undefined if it was ready at the start. */
export type ReadySince = (pod: Pod) => Millis | undefined;

/** Records when pods become ready. Subscribe it before the controller that uses it. */
export function followReadySince(pods: ResourceWatch<Pod>, clock: Clock): ReadySince {
  const byUid = new Map<string, Millis>();
  pods.subscribe(({ before, after }) => {
    const uid = (after ?? before)?.metadata.uid ?? '';
    if (after === undefined || !isPodReady(after)) byUid.delete(uid);
    // Only observed changes have an exact time; pods that were ready at the start have the API's time.
    else if (before !== undefined && !isPodReady(before)) byUid.set(uid, clock.now());
  });
  return (pod) => byUid.get(pod.metadata.uid ?? '');
}

/** Returns the time until a ready pod is available; 0 if it is; undefined if the pod is not ready. */
export function untilAvailable(
  pod: Pod,
  { readySince, minReady, now }: { readonly readySince: ReadySince; readonly minReady: Millis; readonly now: Millis },
): number | undefined {
  if (!isPodReady(pod)) return undefined;
  const since = readySince(pod) ?? readyTransition(pod);
  if (minReady === 0) return 0;
  return since === undefined ? minReady : Math.max(0, since + minReady - now);
}
