/** How the value of a field is read. `Time` is a message of seconds since the epoch. */
export type FieldType =
  | 'string'
  | 'int'
  | 'bool'
  | 'time'
  | 'intOrString'
  | 'stringMap'
  | { readonly message: Message };

/** Fields by number: name in JSON, type, and whether the field repeats. */
export type Message = Readonly<Record<number, readonly [name: string, type: FieldType, repeats?: 'list']>>;

const of = (message: Message): FieldType => ({ message });

const ownerReference: Message = {
  1: ['kind', 'string'],
  3: ['name', 'string'],
  4: ['uid', 'string'],
  5: ['apiVersion', 'string'],
  6: ['controller', 'bool'],
  7: ['blockOwnerDeletion', 'bool'],
};

const objectMeta: Message = {
  1: ['name', 'string'],
  2: ['generateName', 'string'],
  3: ['namespace', 'string'],
  5: ['uid', 'string'],
  6: ['resourceVersion', 'string'],
  7: ['generation', 'int'],
  8: ['creationTimestamp', 'time'],
  9: ['deletionTimestamp', 'time'],
  10: ['deletionGracePeriodSeconds', 'int'],
  11: ['labels', 'stringMap'],
  12: ['annotations', 'stringMap'],
  13: ['ownerReferences', of(ownerReference), 'list'],
  14: ['finalizers', 'string', 'list'],
};

const servicePort: Message = {
  1: ['name', 'string'],
  2: ['protocol', 'string'],
  3: ['port', 'int'],
  4: ['targetPort', 'intOrString'],
  5: ['nodePort', 'int'],
  6: ['appProtocol', 'string'],
};

const serviceSpec: Message = {
  1: ['ports', of(servicePort), 'list'],
  2: ['selector', 'stringMap'],
  3: ['clusterIP', 'string'],
  4: ['type', 'string'],
  5: ['externalIPs', 'string', 'list'],
  7: ['sessionAffinity', 'string'],
  8: ['loadBalancerIP', 'string'],
  9: ['loadBalancerSourceRanges', 'string', 'list'],
  10: ['externalName', 'string'],
  11: ['externalTrafficPolicy', 'string'],
  12: ['healthCheckNodePort', 'int'],
  13: ['publishNotReadyAddresses', 'bool'],
  14: ['sessionAffinityConfig', of({ 1: ['clientIP', of({ 1: ['timeoutSeconds', 'int'] })] })],
  17: ['ipFamilyPolicy', 'string'],
  18: ['clusterIPs', 'string', 'list'],
  19: ['ipFamilies', 'string', 'list'],
  20: ['allocateLoadBalancerNodePorts', 'bool'],
  21: ['loadBalancerClass', 'string'],
  22: ['internalTrafficPolicy', 'string'],
  23: ['trafficDistribution', 'string'],
};

const containerPort: Message = {
  1: ['name', 'string'],
  2: ['hostPort', 'int'],
  3: ['containerPort', 'int'],
  4: ['protocol', 'string'],
  5: ['hostIP', 'string'],
};

const container: Message = {
  1: ['name', 'string'],
  2: ['image', 'string'],
  3: ['command', 'string', 'list'],
  4: ['args', 'string', 'list'],
  5: ['workingDir', 'string'],
  6: ['ports', of(containerPort), 'list'],
  7: ['env', of({ 1: ['name', 'string'], 2: ['value', 'string'] }), 'list'],
  14: ['imagePullPolicy', 'string'],
};

const podTemplate: Message = {
  1: ['metadata', of(objectMeta)],
  2: [
    'spec',
    of({
      2: ['containers', of(container), 'list'],
      3: ['restartPolicy', 'string'],
      4: ['terminationGracePeriodSeconds', 'int'],
      6: ['dnsPolicy', 'string'],
      7: ['nodeSelector', 'stringMap'],
      10: ['nodeName', 'string'],
    }),
  ],
};

const deploymentSpec: Message = {
  1: ['replicas', 'int'],
  2: ['selector', of({ 1: ['matchLabels', 'stringMap'] })],
  3: ['template', of(podTemplate)],
  5: ['minReadySeconds', 'int'],
  6: ['revisionHistoryLimit', 'int'],
  7: ['paused', 'bool'],
  9: ['progressDeadlineSeconds', 'int'],
};

const deleteOptions: Message = {
  1: ['gracePeriodSeconds', 'int'],
  2: ['preconditions', of({ 1: ['uid', 'string'], 2: ['resourceVersion', 'string'] })],
  3: ['orphanDependents', 'bool'],
  4: ['propagationPolicy', 'string'],
  5: ['dryRun', 'string', 'list'],
};

/**
 * The kinds that `kubectl create KIND` and `kubectl drain` send as protobuf, by kind. Only what those commands can
 * set: a field that is not listed is dropped.
 */
export const protobufMessages: Readonly<Record<string, Message>> = {
  Namespace: { 1: ['metadata', of(objectMeta)] },
  Service: { 1: ['metadata', of(objectMeta)], 2: ['spec', of(serviceSpec)] },
  Deployment: { 1: ['metadata', of(objectMeta)], 2: ['spec', of(deploymentSpec)] },
  DeleteOptions: deleteOptions,
};
