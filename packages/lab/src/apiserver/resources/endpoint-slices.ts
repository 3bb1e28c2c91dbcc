import { ipFamilyOf, tryParseIp } from '@switchyard/core';
import { type FieldError, invalidField, requiredField, unsupportedField } from '../status-error.ts';
import { isJsonObject, type Json, type JsonObject, listAt, objectAt, stringAt, valueAt } from '../json.ts';
import { defineResource, type ResourceDefinition } from '../resource.ts';
import { ageColumn, column, nameColumn } from './common.ts';
import * as t from '../schema.ts';

const namedHint = (type: string) => t.object(type, { name: t.text });

const endpointPort = t.object('EndpointPort', {
  name: t.textPointer,
  protocol: t.textPointer,
  port: t.intPointer,
  appProtocol: t.textPointer,
});

const endpointFields = {
  addresses: t.textList,
  conditions: t.object('EndpointConditions', {
    ...t.fields(t.flagPointer, 'ready', 'serving', 'terminating'),
  }),
  hostname: t.textPointer,
  targetRef: t.objectReference,
  nodeName: t.textPointer,
  hints: t.object('EndpointHints', { forZones: t.list(namedHint('ForZone')), forNodes: t.list(namedHint('ForNode')) }),
};

/** discovery.k8s.io/v1 EndpointSlice. */
export const endpointSlices: ResourceDefinition = defineResource({
  group: 'discovery.k8s.io',
  kind: 'EndpointSlice',
  isNamespaced: true,
  hasGeneration: true,
  schema: t.topLevel('EndpointSlice', {
    addressType: t.text,
    endpoints: t.nullableList(
      t.object('Endpoint', { ...endpointFields, deprecatedTopology: t.textMap, zone: t.textPointer }),
    ),
    ports: t.nullableList(endpointPort),
  }),
  setDefaults,
  validate,
  bookmarkShell: { addressType: '', endpoints: null, ports: null },
  columns: [
    nameColumn,
    column('AddressType', (object) => stringAt(object, 'addressType')),
    column('Ports', (object) => firstThree(listAt(object, 'ports').map(portText))),
    column('Endpoints', (object) =>
      firstThree(listAt(object, 'endpoints').flatMap((endpoint) => listAt(endpoint, 'addresses').map(String))),
    ),
    ageColumn,
  ],
});

function setDefaults(object: JsonObject): JsonObject {
  return {
    ...object,
    endpoints: listAt(object, 'endpoints').length === 0 ? null : listAt(object, 'endpoints').map(withConditions),
    ports: listAt(object, 'ports').length === 0 ? null : listAt(object, 'ports').map(setPortDefaults),
  };
}

function withConditions(endpoint: Json): Json {
  if (!isJsonObject(endpoint)) return endpoint;
  const { addresses, conditions, ...rest } = endpoint;
  return { addresses: addresses ?? null, conditions: conditions ?? {}, ...rest };
}

function setPortDefaults(port: Json): Json {
  return isJsonObject(port) ? { name: '', protocol: 'TCP', ...port } : port;
}

function* validate(object: JsonObject, previous: JsonObject | undefined): Generator<FieldError, void> {
  const type = stringAt(object, 'addressType');
  if (type === '') yield requiredField('addressType');
  else if (!['IPv4', 'IPv6', 'FQDN'].includes(type)) {
    yield unsupportedField('addressType', type, ['FQDN', 'IPv4', 'IPv6']);
  }
  for (const [index, endpoint] of listAt(object, 'endpoints').entries()) {
    const addresses = listAt(endpoint, 'addresses');
    const at = `endpoints[${index}].addresses`;
    if (addresses.length === 0) yield requiredField(at, 'must contain at least 1 address');
    for (const [position, address] of addresses.entries()) {
      const ip = tryParseIp(String(address));
      if (type === 'FQDN' || (ip !== undefined && ipFamilyOf(ip) === type)) continue;
      const why =
        ip === undefined
          ? 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
          : `must be an ${type} address`;
      yield invalidField(`${at}[${position}]`, address, why);
    }
  }
  if (previous !== undefined && type !== stringAt(previous, 'addressType')) {
    yield invalidField('addressType', type, 'field is immutable');
  }
}

function portText(port: Json): string {
  const number = valueAt(port, 'port');
  return number === undefined || number === null ? '*' : String(number);
}

function firstThree(items: readonly string[]): string {
  if (items.length === 0) return '<unset>';
  const shown = items.slice(0, 3).join(',');
  return items.length > 3 ? `${shown} + ${items.length - 3} more...` : shown;
}

const zoneLabel = 'topology.kubernetes.io/zone';
const nodeLabel = 'kubernetes.io/hostname';

/**
 * discovery.k8s.io/v1beta1 EndpointSlice, which kube-proxy read before Kubernetes 1.21 and the API server served before 1.25: the
 * objects of v1, with the node and the zone of an endpoint in its `topology`.
 */
export const betaEndpointSlices: ResourceDefinition = defineResource({
  ...endpointSlices,
  version: 'v1beta1',
  schema: t.topLevel('EndpointSlice', {
    addressType: t.text,
    endpoints: t.nullableList(t.object('Endpoint', { ...endpointFields, topology: t.textMap })),
    ports: t.nullableList(endpointPort),
  }),
  view: {
    of: endpointSlices,
    toBase: (object) => withEndpoints(object, toV1),
    fromBase: (object) => withEndpoints(object, toBeta),
  },
});

function withEndpoints(object: JsonObject, change: (endpoint: JsonObject) => JsonObject): JsonObject {
  if (!Array.isArray(object['endpoints'])) return object;
  const endpoints = listAt(object, 'endpoints').map((one): Json => (isJsonObject(one) ? change(one) : one));
  return { ...object, endpoints };
}

function toBeta({ deprecatedTopology, zone, ...endpoint }: JsonObject): JsonObject {
  const { nodeName } = endpoint;
  const topology = {
    ...(isJsonObject(deprecatedTopology ?? null)
      ? objectAt({ deprecatedTopology } as JsonObject, 'deprecatedTopology')
      : {}),
    ...(typeof nodeName === 'string' ? { [nodeLabel]: nodeName } : {}),
    ...(typeof zone === 'string' ? { [zoneLabel]: zone } : {}),
  };
  return Object.keys(topology).length === 0 ? endpoint : { ...endpoint, topology };
}

function toV1({ topology, ...endpoint }: JsonObject): JsonObject {
  if (!isJsonObject(topology ?? null)) return endpoint;
  const { [nodeLabel]: nodeName, [zoneLabel]: zone, ...rest } = topology as JsonObject;
  return {
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(zone === undefined ? {} : { zone }),
    ...endpoint,
    ...(Object.keys(rest).length === 0 ? {} : { deprecatedTopology: rest }),
  };
}
