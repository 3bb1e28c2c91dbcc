import {
  any,
  condition,
  flag,
  flagPointer,
  int,
  intOrString,
  intPointer,
  labelSelector,
  list,
  listByKey,
  localReference,
  longPointer,
  object,
  objectMeta,
  type ObjectSchema,
  openObject,
  retainKeys,
  text,
  textList,
  textMap,
  textPointer,
  topLevel,
} from './schema.ts';

const probe = object('Probe', {
  exec: object('ExecAction', { command: textList }),
  httpGet: object('HTTPGetAction', {
    path: text,
    port: intOrString,
    host: text,
    scheme: text,
    httpHeaders: list(object('HTTPHeader', { name: textPointer, value: textPointer })),
  }),
  tcpSocket: object('TCPSocketAction', { port: intOrString, host: text }),
  grpc: object('GRPCAction', { port: intPointer, service: textPointer }),
  initialDelaySeconds: int,
  timeoutSeconds: int,
  periodSeconds: int,
  successThreshold: int,
  failureThreshold: int,
  terminationGracePeriodSeconds: longPointer,
});

const lifecycleHandler = object('LifecycleHandler', {
  exec: object('ExecAction', { command: textList }),
  httpGet: any,
  tcpSocket: any,
  sleep: object('SleepAction', { seconds: longPointer }),
});

const container = openObject('Container', {
  name: textPointer,
  image: text,
  command: textList,
  args: textList,
  workingDir: text,
  ports: listByKey(
    'containerPort',
    object('ContainerPort', { name: text, hostPort: int, containerPort: intPointer, protocol: text, hostIP: text }),
  ),
  envFrom: list(any),
  env: listByKey('name', object('EnvVar', { name: textPointer, value: text, valueFrom: any })),
  resources: openObject('ResourceRequirements', {}),
  volumeMounts: listByKey('mountPath', openObject('VolumeMount', { name: text, mountPath: text })),
  livenessProbe: probe,
  readinessProbe: probe,
  startupProbe: probe,
  lifecycle: object('Lifecycle', { postStart: lifecycleHandler, preStop: lifecycleHandler, stopSignal: textPointer }),
  terminationMessagePath: text,
  terminationMessagePolicy: text,
  imagePullPolicy: text,
});

const podSpec = openObject('PodSpec', {
  volumes: listByKey('name', retainKeys(openObject('Volume', { name: text }))),
  initContainers: listByKey('name', container),
  containers: listByKey('name', container),
  restartPolicy: text,
  terminationGracePeriodSeconds: longPointer,
  activeDeadlineSeconds: longPointer,
  dnsPolicy: text,
  nodeSelector: textMap,
  serviceAccountName: text,
  automountServiceAccountToken: flagPointer,
  nodeName: text,
  hostNetwork: flag,
  hostPID: flag,
  hostIPC: flag,
  securityContext: openObject('PodSecurityContext', {}),
  imagePullSecrets: listByKey('name', localReference),
  hostname: text,
  subdomain: text,
  affinity: openObject('Affinity', {}),
  schedulerName: text,
  tolerations: list(
    object('Toleration', {
      key: text,
      operator: text,
      value: text,
      effect: text,
      tolerationSeconds: longPointer,
    }),
  ),
  hostAliases: listByKey('ip', object('HostAlias', { ip: text, hostnames: textList })),
  priorityClassName: text,
  priority: intPointer,
  readinessGates: list(object('PodReadinessGate', { conditionType: text })),
  enableServiceLinks: flagPointer,
  preemptionPolicy: textPointer,
  topologySpreadConstraints: listByKey('topologyKey', openObject('TopologySpreadConstraint', { topologyKey: text })),
});

/** `spec.template` of the kinds that create pods. */
export const podTemplate: ObjectSchema = object('PodTemplateSpec', { metadata: objectMeta, spec: podSpec });

/** v1 Pod. Fields of its spec and status that are not listed are kept unchanged. */
export const podSchema: ObjectSchema = topLevel('Pod', {
  spec: podSpec,
  status: openObject('PodStatus', {
    phase: text,
    conditions: listByKey('type', condition),
    message: text,
    reason: text,
    hostIP: text,
    hostIPs: listByKey('ip', object('HostIP', { ip: text })),
    podIP: text,
    podIPs: listByKey('ip', object('PodIP', { ip: text })),
    startTime: text,
    qosClass: text,
  }),
});

/** apps/v1 Deployment. */
export const deploymentSchema: ObjectSchema = topLevel('Deployment', {
  spec: object('DeploymentSpec', {
    replicas: intPointer,
    selector: labelSelector,
    template: podTemplate,
    strategy: retainKeys(
      object('DeploymentStrategy', {
        type: text,
        rollingUpdate: object('RollingUpdateDeployment', { maxUnavailable: intOrString, maxSurge: intOrString }),
      }),
    ),
    minReadySeconds: int,
    revisionHistoryLimit: intPointer,
    paused: flag,
    progressDeadlineSeconds: intPointer,
  }),
  status: object('DeploymentStatus', {
    observedGeneration: int,
    replicas: int,
    updatedReplicas: int,
    readyReplicas: int,
    availableReplicas: int,
    unavailableReplicas: int,
    terminatingReplicas: intPointer,
    conditions: listByKey('type', condition),
    collisionCount: intPointer,
  }),
});

/** apps/v1 ReplicaSet. */
export const replicaSetSchema: ObjectSchema = topLevel('ReplicaSet', {
  spec: object('ReplicaSetSpec', {
    replicas: intPointer,
    minReadySeconds: int,
    selector: labelSelector,
    template: podTemplate,
  }),
  status: object('ReplicaSetStatus', {
    replicas: intPointer,
    fullyLabeledReplicas: int,
    readyReplicas: int,
    availableReplicas: int,
    terminatingReplicas: intPointer,
    observedGeneration: int,
    conditions: listByKey('type', condition),
  }),
});
