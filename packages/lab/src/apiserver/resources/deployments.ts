import { isEqual } from '@switchyard/core';
import { type FieldError, invalidField, requiredField } from '../status-error.ts';
import { type JsonObject, type MutableJsonObject, numberAt, objectAt, stringAt } from '../json.ts';
import { defineResource, type ResourceDefinition } from '../resource.ts';
import { ageColumn, column, nameColumn, numberColumn, pairsText, templateColumns } from './common.ts';
import { podTemplate, setPodSpecDefaults, validatePodSpec } from './pods.ts';
import { type Labels, matchesSelector } from '../../workloads/facts.ts';
import * as t from '../schema.ts';

/** apps/v1 Deployment. */
export const deployments: ResourceDefinition = defineResource({
  group: 'apps',
  kind: 'Deployment',
  shortNames: ['deploy'],
  categories: ['all'],
  isNamespaced: true,
  subresources: ['scale', 'status'],
  hasGeneration: true,
  schema: t.topLevel('Deployment', {
    spec: t.object('DeploymentSpec', {
      replicas: t.intPointer,
      selector: t.labelSelector,
      template: podTemplate,
      strategy: t.retainKeys(
        t.object('DeploymentStrategy', {
          type: t.text,
          rollingUpdate: t.object('RollingUpdateDeployment', {
            maxUnavailable: t.intOrString,
            maxSurge: t.intOrString,
          }),
        }),
      ),
      minReadySeconds: t.int,
      revisionHistoryLimit: t.intPointer,
      paused: t.flag,
      progressDeadlineSeconds: t.intPointer,
    }),
    status: t.object('DeploymentStatus', {
      ...t.fields(t.int, 'observedGeneration', 'replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas'),
      ...t.fields(t.int, 'unavailableReplicas'),
      terminatingReplicas: t.intPointer,
      conditions: t.listByKey('type', t.condition),
      collisionCount: t.intPointer,
    }),
  }),
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
function setTemplateDefaults(template: JsonObject): JsonObject {
  return { metadata: objectAt(template, 'metadata'), spec: setPodSpecDefaults(objectAt(template, 'spec')) };
}

/** Returns the errors in the selector and template of a Deployment, ReplicaSet or DaemonSet. */
function* validateTemplateOwner(object: JsonObject, previous: JsonObject | undefined): Generator<FieldError, void> {
  const spec = objectAt(object, 'spec');
  const selector = objectAt(spec, 'selector');
  const labels = objectAt(spec, 'template', 'metadata', 'labels');
  if (Object.keys(selector).length === 0) yield requiredField('spec.selector');
  else if (!matchesSelector(selector, labels as Labels)) {
    yield invalidField('spec.template.metadata.labels', labels, '`selector` does not match template `labels`');
  }
  const replicas = numberAt(spec, 'replicas') ?? 1;
  if (replicas < 0) yield invalidField('spec.replicas', replicas, 'must be greater than or equal to 0');
  const podSpec = objectAt(spec, 'template', 'spec');
  if (podSpec['containers'] === undefined || isEqual(podSpec['containers'], [])) {
    yield requiredField('spec.template.spec.containers');
  }
  yield* validatePodSpec(podSpec, 'spec.template.spec');
  if (previous !== undefined && !isEqual(selector, objectAt(previous, 'spec', 'selector'))) {
    yield invalidField('spec.selector', selector, 'field is immutable');
  }
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
  schema: t.topLevel('ReplicaSet', {
    spec: t.object('ReplicaSetSpec', {
      replicas: t.intPointer,
      minReadySeconds: t.int,
      selector: t.labelSelector,
      template: podTemplate,
    }),
    status: t.object('ReplicaSetStatus', {
      replicas: t.intPointer,
      ...t.fields(t.int, 'fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'),
      terminatingReplicas: t.intPointer,
      observedGeneration: t.int,
      conditions: t.listByKey('type', t.condition),
    }),
  }),
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

const count = (name: string, field: string): ReturnType<typeof numberColumn> =>
  numberColumn(name, (object) => numberAt(object, 'status', field) ?? 0);

/** apps/v1 DaemonSet. The workloads write its pods and status if `hasDaemonSets` is set; otherwise tests write the status. */
export const daemonSets: ResourceDefinition = defineResource({
  group: 'apps',
  kind: 'DaemonSet',
  shortNames: ['ds'],
  categories: ['all'],
  isNamespaced: true,
  subresources: ['status'],
  hasGeneration: true,
  schema: t.topLevel('DaemonSet', {
    spec: t.object('DaemonSetSpec', {
      selector: t.labelSelector,
      template: podTemplate,
      updateStrategy: t.object('DaemonSetUpdateStrategy', {
        type: t.text,
        rollingUpdate: t.object('RollingUpdateDaemonSet', { maxUnavailable: t.intOrString, maxSurge: t.intOrString }),
      }),
      minReadySeconds: t.int,
      revisionHistoryLimit: t.intPointer,
    }),
    status: t.openObject('DaemonSetStatus', {
      ...t.fields(t.intPointer, 'currentNumberScheduled', 'numberMisscheduled', 'desiredNumberScheduled'),
      ...t.fields(t.intPointer, 'numberReady'),
      observedGeneration: t.long,
      ...t.fields(t.int, 'updatedNumberScheduled', 'numberAvailable', 'numberUnavailable'),
    }),
  }),
  setDefaults: setDaemonSetDefaults,
  validate: (object, previous) => [...validateTemplateOwner(object, previous), ...validateStrategy(object)],
  initialStatus: () => ({
    currentNumberScheduled: 0,
    numberMisscheduled: 0,
    desiredNumberScheduled: 0,
    numberReady: 0,
  }),
  columns: [
    nameColumn,
    count('Desired', 'desiredNumberScheduled'),
    count('Current', 'currentNumberScheduled'),
    count('Ready', 'numberReady'),
    count('Up-to-date', 'updatedNumberScheduled'),
    count('Available', 'numberAvailable'),
    column('Node Selector', (object) => pairsText(objectAt(object, 'spec', 'template', 'spec', 'nodeSelector'))),
    ageColumn,
    ...templateColumns,
  ],
});

/** apps/v1 ControllerRevision, from which `kubectl rollout undo` takes a DaemonSet's earlier template. */
export const controllerRevisions: ResourceDefinition = defineResource({
  group: 'apps',
  kind: 'ControllerRevision',
  isNamespaced: true,
  schema: t.topLevel('ControllerRevision', {
    data: t.any,
    revision: { kind: 'int64', isKeptWhenZero: true },
  }),
  columns: [nameColumn, numberColumn('Revision', (object) => numberAt(object, 'revision') ?? 0), ageColumn],
});

function setDaemonSetDefaults(object: JsonObject): JsonObject {
  const spec = objectAt(object, 'spec');
  const strategy = objectAt(spec, 'updateStrategy');
  const type = stringAt(strategy, 'type') || 'RollingUpdate';
  const rolling = objectAt(strategy, 'rollingUpdate');
  const { maxUnavailable = 1, maxSurge = 0 } = rolling;
  return {
    ...object,
    spec: {
      ...spec,
      template: setTemplateDefaults(objectAt(spec, 'template')),
      updateStrategy: type === 'RollingUpdate' ? { type, rollingUpdate: { maxUnavailable, maxSurge } } : strategy,
      revisionHistoryLimit: spec['revisionHistoryLimit'] ?? 10,
    },
    status: objectAt(object, 'status'),
  };
}

/** One of the two limits, and only one, may be above 0. */
function validateStrategy(object: JsonObject): readonly FieldError[] {
  const strategy = objectAt(object, 'spec', 'updateStrategy');
  if (stringAt(strategy, 'type') !== 'RollingUpdate') return [];
  const { maxUnavailable = 0, maxSurge = 0 } = objectAt(strategy, 'rollingUpdate');
  const field = 'spec.updateStrategy.rollingUpdate';
  const isZero = (value: unknown): boolean => value === 0 || value === '0%';
  if (isZero(maxUnavailable) && isZero(maxSurge)) return [requiredField(`${field}.maxUnavailable`)];
  if (isZero(maxUnavailable) || isZero(maxSurge)) return [];
  return [invalidField(`${field}.maxSurge`, maxSurge, 'may not be set when maxUnavailable is non-zero')];
}
