import { type JsonObject, listAt, objectAt, stringAt, valueAt } from '../json.ts';
import { defineResource, type ResourceDefinition } from '../resource.ts';
import { nodeSchema } from '../schema/cluster.ts';
import { ageColumn, column, conditionOf, nameColumn } from './common.ts';

/** v1 Node. The creating request sets its status, as a kubelet's registration does. */
export const nodes: ResourceDefinition = defineResource({
  kind: 'Node',
  shortNames: ['no'],
  isNamespaced: false,
  subresources: ['status'],
  schema: nodeSchema,
  setDefaults,
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

function setDefaults(object: JsonObject): JsonObject {
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
