import type { Pod, Service } from '@switchyard/core/kubernetes';
import { preStopOf } from '@switchyard/loss/workload';
import { selects } from '../access/selects.ts';

/** Label of a pod that a drain has taken from its ReplicaSet, with the name of that as its value. */
export const movedLabel = 'switchyard.dev/moved-from';
const hashLabel = 'pod-template-hash';

/** A pod that another one of its ReplicaSet replaces before it stops. */
export interface Move {
  readonly pod: Pod;
  readonly replicaSet: string;
  /** Whether an earlier drain has already taken it from its ReplicaSet. */
  readonly isTaken: boolean;
  /** Whether its own preStop hook asks the drain gate. */
  readonly hasHook: boolean;
  /** Labels by which Services select it. */
  readonly serviceLabels: readonly string[];
}

/** Steps of a drain for the pods of a node. */
export interface DrainPlan {
  readonly moves: readonly Move[];
  /**
   * Pods of Services that are evicted, and lose requests unless they serve on for a while: of no Deployment, or of a Service with
   * externalTrafficPolicy Local.
   */
  readonly unprotected: readonly Pod[];
  /** Moves that would delete the data of an emptyDir. */
  readonly withData: readonly Pod[];
}

/** Plans a drain. Pods that are no endpoints, and those of DaemonSets, are left to `kubectl drain`. Pure. */
export function planDrain(pods: readonly Pod[], services: readonly Service[]): DrainPlan {
  const living = pods.filter(
    ({ metadata, status }) =>
      metadata.deletionTimestamp === undefined && status?.phase !== 'Succeeded' && status?.phase !== 'Failed',
  );
  const moves: Move[] = [];
  const unprotected: Pod[] = [];
  for (const pod of living) {
    const selecting = servicesOf(pod, services);
    const isServed = selecting.length > 0;
    const replicaSet = replicaSetOf(pod);
    const hasHook = asksGate(pod);
    // Only a pod that ends still gets what load balancers send to a node without another endpoint (KEP-1669).
    const canLeave = hasHook || selecting.every(({ spec }) => spec?.externalTrafficPolicy !== 'Local');
    if (replicaSet !== undefined && canLeave && (isServed || isTaken(pod))) {
      moves.push({ pod, replicaSet, isTaken: isTaken(pod), hasHook, serviceLabels: labelsOf(selecting) });
    } else if (isServed && !hasHook && ownerOf(pod)?.kind !== 'DaemonSet') unprotected.push(pod);
  }
  const withData = moves
    .map(({ pod }) => pod)
    .filter(({ spec }) => spec?.volumes?.some((one) => one.emptyDir !== undefined) ?? false);
  return { moves, unprotected, withData };
}

function ownerOf({ metadata }: Pod): { readonly kind: string; readonly name: string } | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

function isTaken({ metadata }: Pod): boolean {
  return metadata.labels?.[movedLabel] !== undefined;
}

/** Undefined also for a ReplicaSet without a Deployment: it would keep its pod. */
function replicaSetOf(pod: Pod): string | undefined {
  const { labels = {} } = pod.metadata;
  const owner = ownerOf(pod);
  return owner?.kind === 'ReplicaSet' && labels[hashLabel] !== undefined ? owner.name : labels[movedLabel];
}

/** The ReplicaSet of a Deployment selects its pods by the hash of their template, and replaces one without it. */
export function takeLabels(replicaSet: string): Readonly<Record<string, string | null>> {
  return { [hashLabel]: null, [movedLabel]: replicaSet };
}

/** Whether a hook asks a drain gate. */
function asksGate({ spec }: Pod): boolean {
  return spec?.containers?.some((container) => preStopOf(container).kind === 'gate') ?? false;
}

function servicesOf({ metadata }: Pod, services: readonly Service[]): readonly Service[] {
  return services.filter(
    (service) => service.metadata.namespace === metadata.namespace && selects(service, metadata.labels ?? {}),
  );
}

/** Labels without which these Services do not select the pod. */
function labelsOf(services: readonly Service[]): readonly string[] {
  return [...new Set(services.flatMap(({ spec }) => Object.keys(spec?.selector ?? {})))].toSorted();
}

/** Whether the pod is ready. */
export function isReady({ status, metadata }: Pod): boolean {
  const condition = status?.conditions?.find(({ type }) => type === 'Ready');
  return condition?.status === 'True' && metadata.deletionTimestamp === undefined;
}

/** Whether the ReplicaSet of this name owns the pod. */
export function isOwnedBy(pod: Pod, replicaSet: string): boolean {
  const owner = ownerOf(pod);
  return owner?.kind === 'ReplicaSet' && owner.name === replicaSet;
}

/** Addresses as the gate takes them. */
export function addressesOf({ status }: Pod): string {
  return (status?.podIPs ?? []).map(({ ip }) => ip).join(',');
}

/** `NAMESPACE/NAME`. */
export function nameOf({ metadata }: Pick<Pod, 'metadata'>): string {
  return `${metadata.namespace}/${metadata.name}`;
}
