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

/** Who makes the pod, and what marks it beyond its template. */
export interface PodOwner {
  readonly kind: 'Deployment' | 'DaemonSet';
  readonly object: ApiObject;
  /** With the dash at the end. */
  readonly generateName: string;
  /** Added to the template's. */
  readonly labels: Readonly<Record<string, string>>;
}

/** A pod that a controller makes from a template, with a name of its own, not yet created. */
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

/** Asks for graceful deletion once; a pod that is already going or gone is fine. */
export async function deletePod(pod: Pod, api: ObjectClient, signal: AbortSignal): Promise<void> {
  if (isPodTerminating(pod)) return;
  const { namespace, name = '' } = pod.metadata;
  await api.delete(apiResources.pods, { namespace, name }, {}, signal);
}
