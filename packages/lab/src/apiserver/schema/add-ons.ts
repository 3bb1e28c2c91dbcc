import {
  any,
  flagPointer,
  int,
  intOrString,
  intPointer,
  labelSelector,
  list,
  listByKey,
  long,
  object,
  type ObjectSchema,
  openObject,
  text,
  textList,
  textMap,
  textPointer,
  topLevel,
} from './schema.ts';
import { podTemplate } from './workloads.ts';

/** apps/v1 DaemonSet. */
export const daemonSetSchema: ObjectSchema = topLevel('DaemonSet', {
  spec: object('DaemonSetSpec', {
    selector: labelSelector,
    template: podTemplate,
    updateStrategy: object('DaemonSetUpdateStrategy', {
      type: text,
      rollingUpdate: object('RollingUpdateDaemonSet', { maxUnavailable: intOrString, maxSurge: intOrString }),
    }),
    minReadySeconds: int,
    revisionHistoryLimit: intPointer,
  }),
  status: openObject('DaemonSetStatus', {
    currentNumberScheduled: intPointer,
    numberMisscheduled: intPointer,
    desiredNumberScheduled: intPointer,
    numberReady: intPointer,
    observedGeneration: long,
    updatedNumberScheduled: int,
    numberAvailable: int,
    numberUnavailable: int,
  }),
});

/** apps/v1 ControllerRevision: an earlier template of a DaemonSet. */
export const controllerRevisionSchema: ObjectSchema = topLevel('ControllerRevision', {
  data: any,
  revision: { kind: 'int64', isKeptWhenZero: true },
});

/** v1 ConfigMap. */
export const configMapSchema: ObjectSchema = topLevel('ConfigMap', {
  data: textMap,
  binaryData: textMap,
  immutable: flagPointer,
});

/** v1 ServiceAccount. */
export const serviceAccountSchema: ObjectSchema = topLevel('ServiceAccount', {
  secrets: listByKey('name', openObject('ObjectReference', { name: text })),
  imagePullSecrets: listByKey('name', object('LocalObjectReference', { name: text })),
  automountServiceAccountToken: flagPointer,
});

const policyRule = object('PolicyRule', {
  verbs: textList,
  apiGroups: textList,
  resources: textList,
  resourceNames: textList,
  nonResourceURLs: textList,
});

/** rbac.authorization.k8s.io/v1 ClusterRole. */
export const clusterRoleSchema: ObjectSchema = topLevel('ClusterRole', {
  rules: list(policyRule),
  aggregationRule: any,
});

/** rbac.authorization.k8s.io/v1 ClusterRoleBinding. */
export const clusterRoleBindingSchema: ObjectSchema = topLevel('ClusterRoleBinding', {
  subjects: list(object('Subject', { kind: textPointer, apiGroup: text, name: textPointer, namespace: text })),
  roleRef: object('RoleRef', { apiGroup: textPointer, kind: textPointer, name: textPointer }),
});
