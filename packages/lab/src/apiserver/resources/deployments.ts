import { type FieldError, invalidField, requiredField } from '../status-error.ts';
import { jsonEqual, type JsonObject, type MutableJsonObject, numberAt, objectAt, stringAt } from '../json.ts';
import { defineResource, type ResourceDefinition } from '../resource.ts';
import { deploymentSchema, replicaSetSchema } from '../schema/workloads.ts';
import { ageColumn, column, nameColumn, numberColumn, templateColumns } from './common.ts';
import { setPodSpecDefaults, validatePodSpec } from './pods.ts';
import { type Labels, matchesSelector } from '../../workloads/facts.ts';

/** apps/v1 Deployment. */
export const deployments: ResourceDefinition = defineResource({
  group: 'apps',
  kind: 'Deployment',
  shortNames: ['deploy'],
  categories: ['all'],
  isNamespaced: true,
  subresources: ['scale', 'status'],
  hasGeneration: true,
  schema: deploymentSchema,
  setDefaults,
  validate: (object, previous) => validateTemplateOwner(object, previous),
  initialStatus: () => ({}),
  bookmarkShell: {
    spec: { selector: null, template: { metadata: {}, spec: { containers: null } }, strategy: {} },
    status: {},
  },
  columns: [
    nameColumn,
    column('Ready', (object) => `${numberAt(object, 'status', 'readyReplicas') ?? 0}/${wanted(object)}`),
    column('Up-to-date', (object) => numberAt(object, 'status', 'updatedReplicas') ?? 0),
    column('Available', (object) => numberAt(object, 'status', 'availableReplicas') ?? 0),
    ageColumn,
    ...templateColumns,
  ],
});

/** `spec.template` with the defaults of a pod. */
export function setTemplateDefaults(template: JsonObject): JsonObject {
  return { metadata: objectAt(template, 'metadata'), spec: setPodSpecDefaults(objectAt(template, 'spec')) };
}

/** Returns the errors in the selector and template of a Deployment, ReplicaSet or DaemonSet. */
export function validateTemplateOwner(object: JsonObject, previous: JsonObject | undefined): readonly FieldError[] {
  const spec = objectAt(object, 'spec');
  const selector = objectAt(spec, 'selector');
  const errors: FieldError[] = [];
  const labels = objectAt(spec, 'template', 'metadata', 'labels');
  if (Object.keys(selector).length === 0) errors.push(requiredField('spec.selector'));
  else if (!matchesSelector(selector, labels as Labels)) {
    errors.push(invalidField('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'));
  }
  const replicas = numberAt(spec, 'replicas') ?? 1;
  if (replicas < 0) errors.push(invalidField('spec.replicas', replicas, 'must be greater than or equal to 0'));
  const podSpec = objectAt(spec, 'template', 'spec');
  if (podSpec['containers'] === undefined || jsonEqual(podSpec['containers'], [])) {
    errors.push(requiredField('spec.template.spec.containers'));
  }
  errors.push(...validatePodSpec(podSpec, 'spec.template.spec'));
  if (previous !== undefined && !jsonEqual(selector, objectAt(previous, 'spec', 'selector'))) {
    errors.push(invalidField('spec.selector', selector, 'field is immutable'));
  }
  return errors;
}

function setDefaults(object: JsonObject): JsonObject {
  const spec = objectAt(object, 'spec');
  const { replicas, selector, template: _template, strategy: _strategy, ...rest } = spec;
  const result: MutableJsonObject = {
    replicas: replicas ?? 1,
    ...(selector === undefined ? {} : { selector }),
    template: setTemplateDefaults(objectAt(spec, 'template')),
    strategy: setStrategyDefaults(objectAt(spec, 'strategy')),
    revisionHistoryLimit: spec['revisionHistoryLimit'] ?? 10,
    progressDeadlineSeconds: spec['progressDeadlineSeconds'] ?? 600,
  };
  return { ...object, spec: { ...rest, ...result }, status: objectAt(object, 'status') };
}

function setStrategyDefaults(strategy: JsonObject): JsonObject {
  const type = stringAt(strategy, 'type') || 'RollingUpdate';
  if (type !== 'RollingUpdate') return { ...strategy, type };
  const rolling = objectAt(strategy, 'rollingUpdate');
  const maxUnavailable = rolling['maxUnavailable'] ?? '25%';
  return { type, rollingUpdate: { maxUnavailable, maxSurge: rolling['maxSurge'] ?? '25%' } };
}

function wanted(object: JsonObject): number {
  return numberAt(object, 'spec', 'replicas') ?? 0;
}

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
  setDefaults: setReplicaSetDefaults,
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

function setReplicaSetDefaults(object: JsonObject): JsonObject {
  const spec = objectAt(object, 'spec');
  const replicas = spec['replicas'] ?? 1;
  return { ...object, spec: { ...spec, replicas, template: setTemplateDefaults(objectAt(spec, 'template')) } };
}
