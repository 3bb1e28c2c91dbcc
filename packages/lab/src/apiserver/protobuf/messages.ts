import { deploymentSchema } from '../schema/workloads.ts';
import { namespaceSchema } from '../schema/cluster.ts';
import { serviceSchema } from '../schema/network.ts';
import { flag, longPointer, object, type ObjectSchema, text, textList } from '../schema/schema.ts';

const deleteOptions = object('DeleteOptions', {
  gracePeriodSeconds: longPointer,
  preconditions: object('Preconditions', { uid: text, resourceVersion: text }),
  orphanDependents: flag,
  propagationPolicy: text,
  dryRun: textList,
});

/** The kinds that `kubectl create KIND` and `kubectl drain` send as protobuf, by kind. */
export const protobufKinds: Readonly<Record<string, ObjectSchema>> = {
  Namespace: namespaceSchema,
  Service: serviceSchema,
  Deployment: deploymentSchema,
  DeleteOptions: deleteOptions,
};

/**
 * Names in JSON of the fields of each type, from field number 1 on; `-` for a number that is not read. Only what those commands can
 * set: a field that is not listed is dropped.
 */
const fieldNames: Readonly<Record<string, string>> = {
  Namespace: 'metadata',
  Service: 'metadata spec',
  Deployment: 'metadata spec',
  DeleteOptions: 'gracePeriodSeconds preconditions orphanDependents propagationPolicy dryRun',
  Preconditions: 'uid resourceVersion',
  ObjectMeta:
    'name generateName namespace - uid resourceVersion generation creationTimestamp deletionTimestamp ' +
    'deletionGracePeriodSeconds labels annotations ownerReferences finalizers',
  OwnerReference: 'kind - name uid apiVersion controller blockOwnerDeletion',
  ServiceSpec:
    'ports selector clusterIP type externalIPs - sessionAffinity loadBalancerIP loadBalancerSourceRanges externalName ' +
    'externalTrafficPolicy healthCheckNodePort publishNotReadyAddresses sessionAffinityConfig - - ipFamilyPolicy clusterIPs ' +
    'ipFamilies allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy trafficDistribution',
  ServicePort: 'name protocol port targetPort nodePort appProtocol',
  SessionAffinityConfig: 'clientIP',
  ClientIPConfig: 'timeoutSeconds',
  DeploymentSpec: 'replicas selector template - minReadySeconds revisionHistoryLimit paused - progressDeadlineSeconds',
  LabelSelector: 'matchLabels',
  PodTemplateSpec: 'metadata spec',
  PodSpec: '- containers restartPolicy terminationGracePeriodSeconds - dnsPolicy nodeSelector - - nodeName',
  Container: 'name image command args workingDir ports env - - - - - - imagePullPolicy',
  ContainerPort: 'name hostPort containerPort protocol hostIP',
  EnvVar: 'name value',
};

const namesByType = new Map(Object.entries(fieldNames).map(([type, names]) => [type, names.split(' ')]));

/** Name of field `number` of a type; undefined for one that is not read. */
export function fieldName(type: string, number: number): string | undefined {
  return namesByType.get(type)?.[number - 1];
}
