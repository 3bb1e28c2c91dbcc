import type { Millis, Random } from '@switchyard/core';
import {
  type ApiObject,
  type ApiResource,
  apiResources,
  type ObjectClient,
  type OwnerReference,
  type Pod,
  type PodTemplate,
} from '@switchyard/core/kubernetes';
import type { ControllerContext, ResourceWatch } from './context.ts';
import { controllerOf, followReadySince, isPodTerminating, objectKey, type ReadySince, splitKey } from './facts.ts';
import { KeyedRunner } from './keyed-runner.ts';

/** Kubernetes' alphabet for generated names: no vowels and no characters that look like vowels. */
const safeLetters = 'bcdfghjklmnpqrstvwxz2456789';

/**
 * The `pod-template-hash` of a template: equal templates give equal hashes, in any order of keys. It is
 * not the value the real controller computes (that one hashes a Go dump), only of the same form.
 */
export function templateHash(template: PodTemplate): string {
  const text = canonicalJson(template);
  let hash = 0x811c9dc5; // FNV-1a, 32 bits
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return [...String(hash)].map((digit) => safeLetters[digit.charCodeAt(0) % safeLetters.length]).join('');
}

/** Five letters for the end of a generated name. */
export function nameSuffix(random: Random): string {
  return Array.from({ length: 5 }, () => safeLetters[Math.floor(random() * safeLetters.length)]).join('');
}

function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  entries.sort(([left], [right]) => (left < right ? -1 : 1));
  return `{${entries.map(([key, one]) => `${JSON.stringify(key)}:${canonicalJson(one)}`).join(',')}}`;
}

/** Owner of a pod, and the fields that it adds to the template. */
export interface PodOwner {
  readonly kind: 'Deployment' | 'DaemonSet';
  readonly object: ApiObject;
  /** With the dash at the end. */
  readonly generateName: string;
  /** Added to the template's. */
  readonly labels: Readonly<Record<string, string>>;
}

/** Returns a pod from a template with a new name, not yet created. */
export function podFromTemplate(owner: PodOwner, template: PodTemplate | undefined, random: Random): Pod {
  const { kind, generateName } = owner;
  const { name = '', namespace = 'default', uid = '' } = owner.object.metadata;
  return {
    metadata: {
      name: `${generateName}${nameSuffix(random)}`,
      generateName,
      namespace,
      labels: { ...template?.metadata?.labels, ...owner.labels },
      ...(template?.metadata?.annotations === undefined ? {} : { annotations: template.metadata.annotations }),
      ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid, controller: true, blockOwnerDeletion: true }],
    },
    spec: template?.spec ?? { containers: [] },
  };
}

/** Requests graceful deletion unless the pod is terminating; a missing pod is success. */
export async function deletePod(pod: Pod, api: ObjectClient, signal: AbortSignal): Promise<void> {
  if (isPodTerminating(pod)) return;
  const { namespace, name = '' } = pod.metadata;
  await api.delete(apiResources.pods, { namespace, name }, {}, signal);
}

/** A kind of owner, and the step that its controller takes. */
export interface OwnerController<T extends ApiObject> {
  readonly kind: PodOwner['kind'];
  readonly resource: ApiResource<T>;
  readonly owners: ResourceWatch<T>;
  /** Gets the current pods of the owner. Resolves with the delay until the next run. */
  reconcile(owner: T, pods: readonly Pod[], readySince: ReadySince, signal: AbortSignal): Promise<Millis | undefined>;
}

/** Starts a controller that reconciles an owner when it or one of its pods changes. */
export function startOwnerController<T extends ApiObject>(
  context: ControllerContext,
  { kind, resource, owners, reconcile }: OwnerController<T>,
): KeyedRunner {
  const { pods } = context.watches;
  const readySince = followReadySince(pods, context.clock);
  const ownerOf = (pod: Pod): OwnerReference | undefined => {
    const owner = controllerOf(pod);
    return owner?.kind === kind ? owner : undefined;
  };
  const runner = new KeyedRunner(kind.toLowerCase(), context, async (key, signal) => {
    const { namespace, name } = splitKey(key);
    const [owner, listed] = await Promise.all([
      context.api.find(resource, { namespace, name }, signal),
      context.api.list(apiResources.pods, { namespace }, signal),
    ]);
    // The API server's garbage collection removes the pods of a deleted owner.
    if (owner === undefined || owner.metadata.deletionTimestamp !== undefined) return undefined;
    const own = listed.items.filter((pod) => ownerOf(pod)?.uid === owner.metadata.uid);
    return reconcile(owner, own, readySince, signal);
  });
  owners.subscribe(({ before, after }) => {
    const owner = after ?? before;
    if (owner !== undefined) runner.poke(objectKey(owner));
  });
  pods.subscribe(({ before, after }) => {
    const pod = after ?? before;
    const owner = pod === undefined ? undefined : ownerOf(pod);
    if (owner !== undefined) runner.poke(`${pod?.metadata.namespace ?? 'default'}/${owner.name}`);
  });
  return runner;
}
