import { tryParseCidr } from '@switchyard/core';
import { type JsonObject, listAt, numberAt, objectAt, stringAt, valueAt } from '../json.ts';
import { defineResource, type ResourceDefinition } from '../resource.ts';
import { ageColumn, column, conditionOf, nameColumn, orNone, textSelectors } from './common.ts';
import { type FieldError, invalidField, requiredField } from '../status-error.ts';
import * as t from '../schema.ts';

/** v1 Namespace. */
export const namespaces: ResourceDefinition = defineResource({
  kind: 'Namespace',
  shortNames: ['ns'],
  isNamespaced: false,
  subresources: ['status'],
  schema: t.topLevel('Namespace', {
    spec: t.object('NamespaceSpec', { finalizers: t.textList }),
    status: t.object('NamespaceStatus', { phase: t.text, conditions: t.listByKey('type', t.condition) }),
  }),
  nameRule: 'label',
  fieldSelectors: textSelectors('status.phase'),
  setDefaults: setNamespaceDefaults,
  initialStatus: () => ({ phase: 'Active' }),
  bookmarkShell: { spec: {}, status: {} },
  columns: [nameColumn, column('Status', (object) => stringAt(object, 'status', 'phase')), ageColumn],
});

function setNamespaceDefaults(object: JsonObject): JsonObject {
  const metadata = objectAt(object, 'metadata');
  const labels = { ...objectAt(metadata, 'labels'), 'kubernetes.io/metadata.name': stringAt(metadata, 'name') };
  const spec = objectAt(object, 'spec');
  return {
    ...object,
    metadata: { ...metadata, labels },
    spec: { ...spec, finalizers: spec['finalizers'] ?? ['kubernetes'] },
  };
}

/** v1 Node. The creating request sets its status, as a kubelet's registration does. */
export const nodes: ResourceDefinition = defineResource({
  kind: 'Node',
  shortNames: ['no'],
  isNamespaced: false,
  subresources: ['status'],
  schema: t.topLevel('Node', {
    spec: t.object('NodeSpec', {
      podCIDR: t.text,
      podCIDRs: t.textSet,
      providerID: t.text,
      unschedulable: t.flag,
      taints: t.list(t.object('Taint', { key: t.text, value: t.text, effect: t.text, timeAdded: t.text })),
      configSource: t.any,
      externalID: t.text,
    }),
    status: t.openObject('NodeStatus', {
      phase: t.text,
      conditions: t.listByKey('type', t.condition),
      addresses: t.listByKey('type', t.object('NodeAddress', { type: t.text, address: t.text })),
    }),
  }),
  setDefaults: setNodeDefaults,
  fieldSelectors: {
    'spec.unschedulable': (object) => String(valueAt(object, 'spec', 'unschedulable') === true),
  },
  bookmarkShell: {
    spec: {},
    status: { daemonEndpoints: { kubeletEndpoint: { Port: 0 } }, nodeInfo: emptyNodeInfo() },
  },
  columns: [
    nameColumn,
    column('Status', statusText),
    column('Roles', rolesText),
    ageColumn,
    column('Version', (object) => stringAt(object, 'status', 'nodeInfo', 'kubeletVersion')),
    column('Internal-IP', (object) => addressOf(object, 'InternalIP'), 1),
    column('External-IP', (object) => addressOf(object, 'ExternalIP'), 1),
    column('OS-Image', (object) => infoOf(object, 'osImage'), 1),
    column('Kernel-Version', (object) => infoOf(object, 'kernelVersion'), 1),
    column('Container-Runtime', (object) => infoOf(object, 'containerRuntimeVersion'), 1),
  ],
});

function emptyNodeInfo(): JsonObject {
  const fields = ['machineID', 'systemUUID', 'bootID', 'kernelVersion', 'osImage', 'containerRuntimeVersion'];
  const more = ['kubeletVersion', 'kubeProxyVersion', 'operatingSystem', 'architecture'];
  return Object.fromEntries([...fields, ...more].map((field) => [field, '']));
}

function setNodeDefaults(object: JsonObject): JsonObject {
  const status = objectAt(object, 'status');
  const spec = objectAt(object, 'spec');
  const first = stringAt(spec, 'podCIDR');
  const hasList = listAt(spec, 'podCIDRs').length > 0;
  return {
    ...object,
    spec: first !== '' && !hasList ? { ...spec, podCIDRs: [first] } : spec,
    status: {
      ...status,
      daemonEndpoints: status['daemonEndpoints'] ?? { kubeletEndpoint: { Port: 0 } },
      nodeInfo: { ...emptyNodeInfo(), ...objectAt(status, 'nodeInfo') },
    },
  };
}

function statusText(object: JsonObject): string {
  const ready = stringAt(conditionOf(object, 'Ready'), 'status');
  const parts = [ready === 'True' ? 'Ready' : ready === '' ? 'Unknown' : 'NotReady'];
  if (valueAt(object, 'spec', 'unschedulable') === true) parts.push('SchedulingDisabled');
  return parts.join(',');
}

function rolesText(object: JsonObject): string {
  const prefix = 'node-role.kubernetes.io/';
  const labels = objectAt(object, 'metadata', 'labels');
  const roles = Object.keys(labels).filter((label) => label.startsWith(prefix));
  const names = roles.map((label) => label.slice(prefix.length)).sort();
  return roles.length === 0 ? '<none>' : names.join(',');
}

function addressOf(object: JsonObject, type: string): string {
  const found = listAt(object, 'status', 'addresses').find((address) => stringAt(address, 'type') === type);
  return stringAt(found, 'address') || '<none>';
}

function infoOf(object: JsonObject, field: string): string {
  return stringAt(object, 'status', 'nodeInfo', field) || '<unknown>';
}

/** coordination.k8s.io/v1 Lease. The server only stores them; candidates decide who holds one. */
export const leases: ResourceDefinition = defineResource({
  group: 'coordination.k8s.io',
  kind: 'Lease',
  isNamespaced: true,
  schema: t.topLevel('Lease', {
    spec: t.object('LeaseSpec', {
      holderIdentity: t.textPointer,
      leaseDurationSeconds: t.intPointer,
      acquireTime: t.textPointer,
      renewTime: t.textPointer,
      leaseTransitions: t.intPointer,
      strategy: t.textPointer,
      preferredHolder: t.textPointer,
    }),
  }),
  validate: validateLease,
  columns: [nameColumn, column('Holder', (object) => stringAt(object, 'spec', 'holderIdentity')), ageColumn],
});

function validateLease(object: JsonObject): readonly FieldError[] {
  const duration = numberAt(object, 'spec', 'leaseDurationSeconds');
  const transitions = numberAt(object, 'spec', 'leaseTransitions');
  return [
    ...(duration !== undefined && duration <= 0
      ? [invalidField('spec.leaseDurationSeconds', duration, 'must be greater than 0')]
      : []),
    ...(transitions !== undefined && transitions < 0
      ? [invalidField('spec.leaseTransitions', transitions, 'must be greater than or equal to 0')]
      : []),
    ...['acquireTime', 'renewTime'].flatMap((field) => timeErrors(field, stringAt(object, 'spec', field))),
  ];
}

function timeErrors(field: string, text: string): readonly FieldError[] {
  if (text === '' || /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(text)) return [];
  return [invalidField(`spec.${field}`, text, 'must be a time such as 2006-01-02T15:04:05.000000Z')];
}

/** networking.k8s.io/v1 ServiceCIDR (KEP-1880). Objects made later do not widen the allocation ranges. */
export const serviceCidrs: ResourceDefinition = defineResource({
  group: 'networking.k8s.io',
  kind: 'ServiceCIDR',
  isNamespaced: false,
  subresources: ['status'],
  schema: t.topLevel('ServiceCIDR', {
    spec: t.object('ServiceCIDRSpec', { cidrs: t.textList }),
    status: t.object('ServiceCIDRStatus', { conditions: t.listByKey('type', t.metaCondition) }),
  }),
  validate: validateServiceCidr,
  bookmarkShell: { spec: {}, status: {} },
  columns: [
    nameColumn,
    column('CIDRs', (object) => orNone(listAt(object, 'spec', 'cidrs').map(String).join(','))),
    ageColumn,
  ],
});

function validateServiceCidr(object: JsonObject): readonly FieldError[] {
  const cidrs = listAt(object, 'spec', 'cidrs');
  if (cidrs.length === 0) return [requiredField('spec.cidrs', 'at least one CIDR required')];
  return cidrs.flatMap((cidr, index) =>
    tryParseCidr(String(cidr)) === undefined
      ? [invalidField(`spec.cidrs[${index}]`, cidr, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')]
      : [],
  );
}
