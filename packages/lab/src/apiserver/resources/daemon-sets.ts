import { type FieldError, invalidField, requiredField } from '../status-error.ts';
import { type JsonObject, numberAt, objectAt, stringAt } from '../json.ts';
import { defineResource, type ResourceDefinition } from '../resource.ts';
import { controllerRevisionSchema, daemonSetSchema } from '../schema/add-ons.ts';
import { ageColumn, column, nameColumn, numberColumn, pairsText, templateColumns } from './common.ts';
import { setTemplateDefaults, validateTemplateOwner } from './deployments.ts';

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
  schema: daemonSetSchema,
  setDefaults,
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
  schema: controllerRevisionSchema,
  columns: [nameColumn, numberColumn('Revision', (object) => numberAt(object, 'revision') ?? 0), ageColumn],
});

function setDefaults(object: JsonObject): JsonObject {
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
