import { isJsonObject, type Json, type JsonObject, listAt, objectAt } from '../json.ts';
import { defineResource, type ResourceDefinition } from '../resource.ts';
import { betaEndpointSliceSchema } from '../schema/network.ts';
import { endpointSlices } from './endpoint-slices.ts';

const zoneLabel = 'topology.kubernetes.io/zone';
const nodeLabel = 'kubernetes.io/hostname';

/**
 * discovery.k8s.io/v1beta1 EndpointSlice, which kube-proxy read before Kubernetes 1.21 and the API server served before 1.25: the
 * objects of v1, with the node and the zone of an endpoint in its `topology`.
 */
export const betaEndpointSlices: ResourceDefinition = defineResource({
  ...endpointSlices,
  version: 'v1beta1',
  schema: betaEndpointSliceSchema,
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
