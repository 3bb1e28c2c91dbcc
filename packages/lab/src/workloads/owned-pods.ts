import type { Random } from '@switchyard/core';
import {
  type ApiObject,
  apiResources,
  type ObjectClient,
  type Pod,
  type PodTemplate,
} from '@switchyard/core/kubernetes';
import { isPodTerminating } from './facts.ts';

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
