import { type JsonObject, numberAt, objectAt } from '../json.ts';
import { defineResource, type ResourceDefinition } from '../resource.ts';
import { replicaSetSchema } from '../schema/workloads.ts';
import { ageColumn, nameColumn, numberColumn, templateColumns } from './common.ts';
import { setTemplateDefaults, validateTemplateOwner } from './deployments.ts';

/** apps/v1 ReplicaSet: a Deployment's controller creates one per template. */
export const replicaSets: ResourceDefinition = defineResource({
  group: 'apps',
  kind: 'ReplicaSet',
  shortNames: ['rs'],
  categories: ['all'],
  isNamespaced: true,
  subresources: ['scale', 'status'],
  hasGeneration: true,
  schema: replicaSetSchema,
  setDefaults,
  validate: validateTemplateOwner,
  initialStatus: () => ({ replicas: 0 }),
  bookmarkShell: {
    spec: { selector: null, template: { metadata: {}, spec: { containers: null } } },
    status: { replicas: 0 },
  },
  columns: [
    nameColumn,
    numberColumn('Desired', (object) => numberAt(object, 'spec', 'replicas') ?? 0),
    numberColumn('Current', (object) => numberAt(object, 'status', 'replicas') ?? 0),
    numberColumn('Ready', (object) => numberAt(object, 'status', 'readyReplicas') ?? 0),
    ageColumn,
    ...templateColumns,
  ],
});

function setDefaults(object: JsonObject): JsonObject {
  const spec = objectAt(object, 'spec');
  const replicas = spec['replicas'] ?? 1;
  return { ...object, spec: { ...spec, replicas, template: setTemplateDefaults(objectAt(spec, 'template')) } };
}
