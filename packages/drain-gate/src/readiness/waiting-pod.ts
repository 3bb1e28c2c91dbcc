import { type IpAddress, tryParseIp } from '@switchyard/core';
import type { JsonRequest, Pod, RawObject } from '@switchyard/core/kubernetes';

/** The condition that pods name in `spec.readinessGates`. */
export const conditionType = 'switchyard.dev/nodes-follow';

/** A value of the condition. */
export interface NodesFollow {
  readonly status: 'True' | 'False';
  /** `NodesFollow` and `NoService` are True, `NodesBehind` is False. */
  readonly reason: 'NodesFollow' | 'NoService' | 'NodesBehind';
  readonly message: string;
}

/** A pod with the readiness gate whose containers are ready, and whose condition is not True yet. */
export interface WaitingPod {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly addresses: readonly IpAddress[];
  /** The condition that it has; undefined before the first. */
  readonly condition: { readonly status: string; readonly message: string } | undefined;
}

/** Projects a pod. One that does not wait is ignored: once True, the condition stays True. */
export function projectPod(
  raw: RawObject,
):
  | { readonly status: 'record'; readonly name: string; readonly record: WaitingPod }
  | { readonly status: 'ignored'; readonly name: string } {
  const { metadata, spec, status } = raw as Pod; // the path that was asked says so
  const { namespace = '', name = '', uid = '', deletionTimestamp } = metadata;
  const key = `${namespace}/${name}`;
  const isGated = (spec?.readinessGates ?? []).some((gate) => gate.conditionType === conditionType);
  const found = (type: string) => status?.conditions?.find((condition) => condition.type === type);
  const own = found(conditionType);
  const isWaiting = isGated && own?.status !== 'True' && deletionTimestamp === undefined;
  if (!isWaiting || found('ContainersReady')?.status !== 'True') return { status: 'ignored', name: key };
  const addresses = (status?.podIPs ?? []).map(({ ip }) => tryParseIp(ip ?? '')).filter((ip) => ip !== undefined);
  const condition = own === undefined ? undefined : { status: own.status, message: own.message ?? '' };
  return { status: 'record', name: key, record: { key, namespace, name, uid, addresses, condition } };
}

/** The request that writes a condition. The server refuses it with 409 for another pod of the name. */
export function conditionRequest(pod: WaitingPod, condition: NodesFollow, now: Date): JsonRequest {
  const { namespace, name, uid } = pod;
  const time = `${now.toISOString().slice(0, 19)}Z`;
  const isTransition = pod.condition?.status !== condition.status;
  const written = { type: conditionType, ...condition, ...(isTransition ? { lastTransitionTime: time } : {}) };
  return {
    method: 'PATCH',
    path: `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/status`,
    body: { metadata: { uid }, status: { conditions: [written] } },
    headers: { 'content-type': 'application/strategic-merge-patch+json' },
  };
}
