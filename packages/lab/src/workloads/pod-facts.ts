import type { Millis } from '@switchyard/core';
import type { ApiObject, OwnerReference, Pod } from '@switchyard/core/kubernetes';
import { findCondition } from './conditions.ts';
import { parseApiTime } from './time-scale.ts';

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

/** Whether the Ready condition is True. */
export function isPodReady(pod: Pod): boolean {
  return findCondition(pod.status?.conditions, 'Ready')?.status === 'True';
}

/** Whether the pod has a deletionTimestamp. */
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

/** The owner that manages the object. */
export function controllerOf(object: ApiObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true);
}
