import type { Millis } from '@switchyard/core';
import type { Deployment, EndpointObject, EndpointSlice, Pod } from '@switchyard/core/kubernetes';
import type { EndpointCondition, PodTimes, SliceChange } from './recording.ts';
import type { WatchEvent } from './watch-event.ts';

/** Pods of a Deployment over time. */
export class PodTracker {
  readonly #pods = new Map<string, PodTimes>();
  readonly #former: ReadonlySet<string>;
  readonly #unseen: Set<string>;

  /** `former`: names of the pods that exist before the watch. */
  constructor(former: readonly string[]) {
    this.#former = new Set(former);
    this.#unseen = new Set(former);
  }

  note({ type, object }: WatchEvent<Pod>, at: Millis): void {
    const { metadata, spec, status } = object;
    const name = metadata.name ?? '';
    const isFormer = this.#former.has(name);
    const before = this.#pods.get(name);
    const isReady = status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;
    const isDeleted = metadata.deletionTimestamp !== undefined || type === 'DELETED';
    this.#unseen.delete(name);
    this.#pods.set(name, {
      name,
      node: spec?.nodeName ?? before?.node,
      addresses: status?.podIPs?.map(({ ip }) => ip) ?? before?.addresses ?? [],
      isFormer,
      created: isFormer ? undefined : (before?.created ?? at),
      ready: isFormer ? undefined : (before?.ready ?? (isReady ? at : undefined)),
      // One that ends already when the watch begins has the time of the first sight.
      deleted: before?.deleted ?? (isDeleted ? at : undefined),
      removed: type === 'DELETED' ? at : before?.removed,
    });
  }

  /** All pods, in the order of their first sight. */
  get pods(): readonly PodTimes[] {
    return [...this.#pods.values()];
  }

  /** Whether all pods that exist before the watch were seen. */
  get isComplete(): boolean {
    return this.#unseen.size === 0;
  }
}

/** Conditions of the endpoints in a Service's EndpointSlices over time. An endpoint may move from one slice to another. */
export class SliceTracker {
  readonly #slices = new Map<string, EndpointSlice>();
  readonly #conditions = new Map<string, EndpointCondition>();
  readonly #changes: SliceChange[] = [];
  readonly #unseen: Set<string>;

  /** `former`: names of the slices that exist before the watch. */
  constructor(former: readonly string[]) {
    this.#unseen = new Set(former);
  }

  note({ type, object }: WatchEvent<EndpointSlice>, at: Millis): void {
    const name = object.metadata.name ?? '';
    const service = serviceOf(object);
    const isBefore = this.#unseen.delete(name);
    if (type === 'DELETED') this.#slices.delete(name);
    else this.#slices.set(name, object);
    const now = new Map<string, EndpointCondition>();
    for (const slice of this.#slices.values()) {
      if (serviceOf(slice) !== service) continue;
      for (const endpoint of slice.endpoints ?? [])
        for (const address of endpoint.addresses)
          now.set(`${service} ${address}`, conditionOf(endpoint.conditions ?? {}));
    }
    for (const [key, condition] of this.#conditions)
      if (key.startsWith(`${service} `) && condition !== 'removed' && !now.has(key)) now.set(key, 'removed');
    for (const [key, condition] of now) {
      if (this.#conditions.get(key) === condition) continue;
      this.#conditions.set(key, condition);
      this.#changes.push({ at, service, address: key.slice(service.length + 1), condition, isBefore });
    }
  }

  /** All changes in their order. */
  get changes(): readonly SliceChange[] {
    return this.#changes;
  }

  /** Whether the state at the begin of the watch is known. */
  get isComplete(): boolean {
    return this.#unseen.size === 0;
  }
}

function serviceOf({ metadata }: EndpointSlice): string {
  return metadata.labels?.['kubernetes.io/service-name'] ?? '';
}

/** Condition of an endpoint with the API's defaults: an unset `ready` is true. */
export function conditionOf({
  ready,
  terminating,
}: Pick<NonNullable<EndpointObject['conditions']>, 'ready' | 'terminating'>): EndpointCondition {
  if (terminating === true) return 'terminating';
  return ready === false ? 'notReady' : 'ready';
}

/** Whether the Deployment's controller has work left. */
export function isRolling({ metadata, spec, status }: Deployment): boolean {
  const wanted = spec?.replicas ?? 1;
  const { observedGeneration = 0, updatedReplicas = 0, replicas = 0, availableReplicas = 0 } = status ?? {};
  return (
    observedGeneration < (metadata.generation ?? 0) ||
    updatedReplicas < wanted ||
    replicas > updatedReplicas ||
    availableReplicas < updatedReplicas
  );
}

/** Begin and end of a rollout. */
export class RolloutTracker {
  readonly #generation: number;
  #deployment: Deployment | undefined;
  #begin: Millis | undefined;

  /** `before`: the Deployment as it was read before the watch. */
  constructor(before: Deployment) {
    this.#generation = before.metadata.generation ?? 0;
  }

  note({ object }: WatchEvent<Deployment>, at: Millis): void {
    this.#deployment = object;
    if (this.#begin === undefined && ((object.metadata.generation ?? 0) !== this.#generation || isRolling(object)))
      this.#begin = at;
  }

  get hasSeen(): boolean {
    return this.#deployment !== undefined;
  }

  /** When the first change was seen; undefined: no rollout has begun. */
  get begin(): Millis | undefined {
    return this.#begin;
  }

  /** Whether a rollout has begun and ended: all pods are new and available, and no pod of before is left. */
  isEnded(pods: readonly PodTimes[]): boolean {
    if (this.#begin === undefined || this.#deployment === undefined || isRolling(this.#deployment)) return false;
    const left = pods.filter(({ removed }) => removed === undefined);
    return left.every(({ deleted }) => deleted === undefined) && left.length === (this.#deployment.spec?.replicas ?? 1);
  }
}
