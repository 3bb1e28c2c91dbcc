import { defineResource, type ResourceDefinition } from '../resource.ts';
import { deployments, replicaSets } from './deployments.ts';
import { endpointSlices } from './endpoint-slices.ts';
import { events, newEvents } from './events.ts';
import { leases, namespaces, nodes, serviceCidrs } from './cluster-kinds.ts';
import { pods } from './pods.ts';
import { services } from './services.ts';
import { listAt, objectAt, stringAt } from '../json.ts';
import {
  clusterRoleBindingSchema,
  clusterRoleSchema,
  configMapSchema,
  serviceAccountSchema,
} from '../schema/add-ons.ts';
import { ageColumn, column, nameColumn, numberColumn } from './common.ts';
import { controllerRevisions, daemonSets } from './daemon-sets.ts';

/** All kinds of the server, in the order of discovery. */
export const resourceTable: readonly ResourceDefinition[] = [
  events,
  namespaces,
  nodes,
  pods,
  services,
  deployments,
  replicaSets,
  newEvents,
  serviceCidrs,
  leases,
  endpointSlices,
];

const rbac = { group: 'rbac.authorization.k8s.io', isNamespaced: false, nameRule: 'any' } as const;

/**
 * Kinds in an add-on's manifests. The server stores them with a few defaults; they have no effect: no DaemonSet creates pods,
 * no ClusterRole grants rights.
 */
export const addOnResources: readonly ResourceDefinition[] = [
  defineResource({
    kind: 'ConfigMap',
    shortNames: ['cm'],
    isNamespaced: true,
    schema: configMapSchema,
    columns: [nameColumn, numberColumn('Data', (object) => Object.keys(objectAt(object, 'data')).length), ageColumn],
  }),
  defineResource({
    kind: 'ServiceAccount',
    shortNames: ['sa'],
    isNamespaced: true,
    schema: serviceAccountSchema,
    returnsDeleted: true,
    columns: [nameColumn, numberColumn('Secrets', (object) => listAt(object, 'secrets').length), ageColumn],
  }),
  daemonSets,
  controllerRevisions,
  defineResource({
    ...rbac,
    kind: 'ClusterRole',
    schema: clusterRoleSchema,
    columns: [nameColumn, column('Created At', (object) => stringAt(object, 'metadata', 'creationTimestamp'))],
  }),
  defineResource({
    ...rbac,
    kind: 'ClusterRoleBinding',
    schema: clusterRoleBindingSchema,
    columns: [
      nameColumn,
      column('Role', (object) => `${stringAt(object, 'roleRef', 'kind')}/${stringAt(object, 'roleRef', 'name')}`),
      ageColumn,
    ],
  }),
];
