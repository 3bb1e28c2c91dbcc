import type { Random } from '@switchyard/core';
import {
  type ApiObject,
  apiResources,
  type ObjectClient,
  type Pod,
  type PodTemplate,
} from '@switchyard/core/kubernetes';
import { isPodTerminating } from './pod-facts.ts';
import { nameSuffix } from './template-hash.ts';

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
