import { isEqual } from '@switchyard/core';
import type { Millis } from '@switchyard/core';
import { type FieldError, forbiddenField, invalidField, requiredField } from '../status-error.ts';
import {
  isJsonObject,
  type Json,
  type JsonObject,
  listAt,
  type MutableJsonObject,
  numberAt,
  objectAt,
  stringAt,
  valueAt,
} from '../json.ts';
import { defineResource, type ResourceContext, type ResourceDefinition } from '../resource.ts';
import { ageColumn, column, conditionOf, nameColumn, orNone, textSelectors } from './common.ts';
import * as t from '../schema.ts';

const probe = t.object('Probe', {
  exec: t.object('ExecAction', { command: t.textList }),
  httpGet: t.object('HTTPGetAction', {
    path: t.text,
    port: t.intOrString,
    host: t.text,
    scheme: t.text,
    httpHeaders: t.list(t.object('HTTPHeader', { name: t.textPointer, value: t.textPointer })),
  }),
  tcpSocket: t.object('TCPSocketAction', { port: t.intOrString, host: t.text }),
  grpc: t.object('GRPCAction', { port: t.intPointer, service: t.textPointer }),
  ...t.fields(t.int, 'initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold'),
  terminationGracePeriodSeconds: t.longPointer,
});

const lifecycleHandler = t.object('LifecycleHandler', {
  exec: t.object('ExecAction', { command: t.textList }),
  httpGet: t.any,
  tcpSocket: t.any,
  sleep: t.object('SleepAction', { seconds: t.longPointer }),
});

const container = t.openObject('Container', {
  name: t.textPointer,
  image: t.text,
  command: t.textList,
  args: t.textList,
  workingDir: t.text,
  ports: t.listByKey(
    'containerPort',
    t.object('ContainerPort', {
      name: t.text,
      hostPort: t.int,
      containerPort: t.intPointer,
      protocol: t.text,
      hostIP: t.text,
    }),
  ),
  envFrom: t.list(t.any),
  env: t.listByKey('name', t.object('EnvVar', { name: t.textPointer, value: t.text, valueFrom: t.any })),
  resources: t.openObject('ResourceRequirements', {}),
  volumeMounts: t.listByKey('mountPath', t.openObject('VolumeMount', { name: t.text, mountPath: t.text })),
  livenessProbe: probe,
  readinessProbe: probe,
  startupProbe: probe,
  lifecycle: t.object('Lifecycle', {
    postStart: lifecycleHandler,
    preStop: lifecycleHandler,
    stopSignal: t.textPointer,
  }),
  ...t.fields(t.text, 'terminationMessagePath', 'terminationMessagePolicy', 'imagePullPolicy'),
});

const podSpec = t.openObject('PodSpec', {
  volumes: t.listByKey('name', t.retainKeys(t.openObject('Volume', { name: t.text }))),
  initContainers: t.listByKey('name', container),
  containers: t.listByKey('name', container),
  restartPolicy: t.text,
  terminationGracePeriodSeconds: t.longPointer,
  activeDeadlineSeconds: t.longPointer,
  dnsPolicy: t.text,
  nodeSelector: t.textMap,
  serviceAccountName: t.text,
  automountServiceAccountToken: t.flagPointer,
  nodeName: t.text,
  ...t.fields(t.flag, 'hostNetwork', 'hostPID', 'hostIPC'),
  securityContext: t.openObject('PodSecurityContext', {}),
  imagePullSecrets: t.listByKey('name', t.localReference),
  hostname: t.text,
  subdomain: t.text,
  affinity: t.openObject('Affinity', {}),
  schedulerName: t.text,
  tolerations: t.list(
    t.object('Toleration', {
      ...t.fields(t.text, 'key', 'operator', 'value', 'effect'),
      tolerationSeconds: t.longPointer,
    }),
  ),
  hostAliases: t.listByKey('ip', t.object('HostAlias', { ip: t.text, hostnames: t.textList })),
  priorityClassName: t.text,
  priority: t.intPointer,
  readinessGates: t.list(t.object('PodReadinessGate', { conditionType: t.text })),
  enableServiceLinks: t.flagPointer,
  preemptionPolicy: t.textPointer,
  topologySpreadConstraints: t.listByKey(
    'topologyKey',
    t.openObject('TopologySpreadConstraint', { topologyKey: t.text }),
  ),
});

export const podTemplate: t.ObjectSchema = t.object('PodTemplateSpec', { metadata: t.objectMeta, spec: podSpec });

/** Returns a pod spec with its defaults and those of its containers, for Pods and templates. */
export function setPodSpecDefaults(spec: JsonObject): JsonObject {
  const { containers: _containers, initContainers: _init, ...rest } = spec;
  const result: MutableJsonObject = {
    ...rest,
    containers: listAt(spec, 'containers').map(setContainerDefaults),
    restartPolicy: spec['restartPolicy'] ?? 'Always',
    terminationGracePeriodSeconds: spec['terminationGracePeriodSeconds'] ?? 30,
    dnsPolicy: spec['dnsPolicy'] ?? 'ClusterFirst',
    securityContext: spec['securityContext'] ?? {},
    schedulerName: spec['schedulerName'] ?? 'default-scheduler',
  };
  const init = listAt(spec, 'initContainers');
  if (init.length > 0) result['initContainers'] = init.map(setContainerDefaults);
  return result;
}

/** Returns the errors in the containers of the pod spec at path `at`. */
export function* validatePodSpec(spec: JsonObject, at: string): Generator<FieldError, void> {
  for (const [index, container] of listAt(spec, 'containers').entries()) {
    const here = `${at}.containers[${index}]`;
    if (stringAt(container, 'name') === '') yield requiredField(`${here}.name`);
    if (stringAt(container, 'image') === '') yield requiredField(`${here}.image`);
    for (const [position, port] of listAt(container, 'ports').entries()) {
      const number = isJsonObject(port) ? port['containerPort'] : undefined;
      if (typeof number === 'number' && number >= 1 && number <= 65_535) continue;
      const field = `${here}.ports[${position}].containerPort`;
      yield invalidField(field, number, 'must be between 1 and 65535, inclusive');
    }
  }
}

function setContainerDefaults(container: Json): Json {
  if (!isJsonObject(container)) return container;
  const result: MutableJsonObject = { ...container };
  const ports = listAt(container, 'ports');
  if (ports.length > 0) {
    result['ports'] = ports.map((port) =>
      isJsonObject(port) ? { ...port, protocol: port['protocol'] ?? 'TCP' } : port,
    );
  }
  result['resources'] ??= {};
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    const probe = container[name];
    if (isJsonObject(probe)) result[name] = setProbeDefaults(probe);
  }
  result['terminationMessagePath'] ??= '/dev/termination-log';
  result['terminationMessagePolicy'] ??= 'File';
  result['imagePullPolicy'] ??= pullPolicy(stringAt(container, 'image'));
  return result;
}

function setProbeDefaults(probe: JsonObject): JsonObject {
  const result: MutableJsonObject = {
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
    ...probe,
  };
  const http = probe['httpGet'];
  if (isJsonObject(http)) result['httpGet'] = { path: '/', scheme: 'HTTP', ...http };
  return result;
}

function pullPolicy(image: string): string {
  const name = image.slice(image.lastIndexOf('/') + 1);
  return !name.includes(':') || name.endsWith(':latest') ? 'Always' : 'IfNotPresent';
}

/** v1 Pod. */
export const pods: ResourceDefinition = defineResource({
  kind: 'Pod',
  shortNames: ['po'],
  categories: ['all'],
  isNamespaced: true,
  subresources: ['status'],
  hasGeneration: true,
  schema: t.topLevel('Pod', {
    spec: podSpec,
    status: t.openObject('PodStatus', {
      phase: t.text,
      conditions: t.listByKey('type', t.condition),
      ...t.fields(t.text, 'message', 'reason', 'hostIP'),
      hostIPs: t.listByKey('ip', t.object('HostIP', { ip: t.text })),
      podIP: t.text,
      podIPs: t.listByKey('ip', t.object('PodIP', { ip: t.text })),
      startTime: t.text,
      qosClass: t.text,
    }),
  }),
  fieldSelectors: {
    ...textSelectors('spec.nodeName', 'spec.restartPolicy', 'spec.schedulerName', 'spec.serviceAccountName'),
    ...textSelectors('status.phase', 'status.podIP', 'status.nominatedNodeName'),
    'spec.hostNetwork': (object) => String(valueAt(object, 'spec', 'hostNetwork') === true),
  },
  setDefaults,
  validate,
  initialStatus: () => ({ phase: 'Pending', qosClass: 'BestEffort' }),
  bookmarkShell: { spec: { containers: null }, status: {} },
  returnsDeleted: true,
  hasGracefulDeletion: true,
  columns: [
    nameColumn,
    column('Ready', readyText),
    column('Status', statusText),
    column('Restarts', (object) => String(restarts(object))),
    ageColumn,
    column('IP', (object) => orNone(stringAt(object, 'status', 'podIP')), 1),
    column('Node', (object) => orNone(stringAt(object, 'spec', 'nodeName')), 1),
    column('Nominated Node', (object) => orNone(stringAt(object, 'status', 'nominatedNodeName')), 1),
    column('Readiness Gates', gatesText, 1),
  ],
});

function setDefaults(object: JsonObject, previous: JsonObject | undefined, context: ResourceContext): JsonObject {
  const spec = withTolerations(setPodSpecDefaults(objectAt(object, 'spec')));
  const node = stringAt(spec, 'nodeName');
  const isBoundNow = node !== '' && node !== stringAt(previous, 'spec', 'nodeName');
  const metadata = objectAt(object, 'metadata');
  return { ...object, metadata: isBoundNow ? withTopology(metadata, context.findNode(node)) : metadata, spec };
}

/** Copies zone and region of the node that a pod is bound to (PodTopologyLabels admission plug-in). */
function withTopology(metadata: JsonObject, node: JsonObject | undefined): JsonObject {
  const nodeLabels = objectAt(node, 'metadata', 'labels');
  const labels: MutableJsonObject = { ...objectAt(metadata, 'labels') };
  for (const key of ['topology.kubernetes.io/zone', 'topology.kubernetes.io/region']) {
    const value = nodeLabels[key];
    if (value !== undefined) labels[key] = value;
  }
  return Object.keys(labels).length === 0 ? metadata : { ...metadata, labels };
}

/** Adds the fields of the DefaultTolerationSeconds and Priority admission plug-ins. */
function withTolerations(spec: JsonObject): JsonObject {
  const given = listAt(spec, 'tolerations');
  const missing = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].filter(
    (key) => !given.some((toleration) => stringAt(toleration, 'key') === key),
  );
  const added = missing.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 }));
  return {
    ...spec,
    tolerations: [...given, ...added],
    priority: spec['priority'] ?? 0,
    enableServiceLinks: spec['enableServiceLinks'] ?? true,
    preemptionPolicy: spec['preemptionPolicy'] ?? 'PreemptLowerPriority',
  };
}

function* validate(object: JsonObject, previous: JsonObject | undefined): Generator<FieldError, void> {
  const spec = objectAt(object, 'spec');
  if (listAt(spec, 'containers').length === 0) yield requiredField('spec.containers');
  yield* validatePodSpec(spec, 'spec');
  if (previous !== undefined && !isEqual(fixedPart(spec, previous), fixedPart(objectAt(previous, 'spec'), previous))) {
    const why =
      'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,' +
      '`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),' +
      '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';
    yield forbiddenField('spec', why);
  }
}

/** Returns the immutable part. `nodeName` may be set once: the lab's scheduler writes it with an ordinary patch. */
function fixedPart(spec: JsonObject, previous: JsonObject): JsonObject {
  const { tolerations: _t, activeDeadlineSeconds: _a, nodeName, containers: _c, initContainers: _i, ...rest } = spec;
  const withoutImages = listAt(spec, 'containers').map((container) => {
    if (!isJsonObject(container)) return container;
    const { image: _image, ...others } = container;
    return others;
  });
  const isBound = stringAt(previous, 'spec', 'nodeName') !== '';
  return { ...rest, containers: withoutImages, ...(isBound && nodeName !== undefined ? { nodeName } : {}) };
}

function readyText(object: JsonObject): string {
  const statuses = listAt(object, 'status', 'containerStatuses');
  const total = listAt(object, 'spec', 'containers').length;
  const ready = statuses.filter((status) => valueAt(status, 'ready') === true).length;
  return `${ready}/${total}`;
}

function restarts(object: JsonObject): number {
  return listAt(object, 'status', 'containerStatuses').reduce<number>(
    (sum, status) => sum + (numberAt(status, 'restartCount') ?? 0),
    0,
  );
}

function statusText(object: JsonObject, _now: Millis): string {
  if (stringAt(object, 'metadata', 'deletionTimestamp') !== '') return 'Terminating';
  const reasons = listAt(object, 'status', 'containerStatuses').flatMap((status) => [
    stringAt(status, 'state', 'waiting', 'reason'),
    stringAt(status, 'state', 'terminated', 'reason'),
  ]);
  const reason = reasons.find((text) => text !== '') ?? stringAt(object, 'status', 'reason');
  const phase = stringAt(object, 'status', 'phase');
  return reason === '' ? (phase === 'Succeeded' ? 'Completed' : phase) : reason;
}

function gatesText(object: JsonObject): string {
  const gates = listAt(object, 'spec', 'readinessGates');
  if (gates.length === 0) return '<none>';
  const passed = gates.filter(
    (gate) => stringAt(conditionOf(object, stringAt(gate, 'conditionType')), 'status') === 'True',
  );
  return `${passed.length}/${gates.length}`;
}
