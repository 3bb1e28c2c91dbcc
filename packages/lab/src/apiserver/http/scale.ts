import { type JsonObject, numberAt, objectAt, stringAt, withFields } from '../json.ts';
import type { ResourceDefinition } from '../resource.ts';
import { selectorText } from '../resources/common.ts';
import { objectMeta } from '../schema/common.ts';
import { int, object, type ObjectSchema, text } from '../schema/schema.ts';
import { conflict } from '../status-error.ts';

/** autoscaling/v1 Scale. */
export const scaleSchema: ObjectSchema = object('Scale', {
  kind: text,
  apiVersion: text,
  metadata: objectMeta,
  spec: object('ScaleSpec', { replicas: int }),
  status: object('ScaleStatus', { replicas: int, selector: text }),
});

/** The Scale of a Deployment or ReplicaSet. */
export function scaleOf(resource: ResourceDefinition, owner: JsonObject): JsonObject {
  const metadata = objectAt(owner, 'metadata');
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const replicas = numberAt(owner, 'spec', 'replicas') ?? 0;
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: withFields({}, { name, namespace, uid, resourceVersion, creationTimestamp }),
    spec: replicas === 0 ? {} : { replicas },
    status: {
      replicas: numberAt(owner, 'status', 'replicas') ?? 0,
      selector: resource.subresources.includes('scale') ? selectorText(objectAt(owner, 'spec', 'selector')) : '',
    },
  };
}

/** Returns the owner with the replicas of a written Scale. */
export function scaleBody(owner: JsonObject, scale: JsonObject): JsonObject {
  const version = stringAt(scale, 'metadata', 'resourceVersion');
  const name = stringAt(owner, 'metadata', 'name');
  if (version !== '' && version !== stringAt(owner, 'metadata', 'resourceVersion')) {
    throw conflict({ group: 'apps', plural: 'deployments', kind: 'Deployment' }, name);
  }
  const replicas = numberAt(scale, 'spec', 'replicas') ?? 0;
  return { ...owner, spec: { ...objectAt(owner, 'spec'), replicas } };
}
