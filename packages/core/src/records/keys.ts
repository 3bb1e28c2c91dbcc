import type { Branded } from '../brand.ts';
import type { Protocol } from '../ip/port.ts';

/** `namespace/name` of a Service. */
export type ServiceKey = Branded<string, 'ServiceKey'>;
/** `namespace/name:port/TCP`: the identity of what is load-balanced. The port name may be empty. */
export type ServicePortKey = Branded<string, 'ServicePortKey'>;
/** `namespace/name` of an EndpointSlice. */
export type SliceKey = Branded<string, 'SliceKey'>;
/** Name of a Node object, lower case. */
export type NodeName = Branded<string, 'NodeName'>;

/** The key of the Service `namespace/name`. */
export function serviceKey(namespace: string, name: string): ServiceKey {
  return `${namespace}/${name}` as ServiceKey;
}

/** The key of one Service port. */
export function servicePortKey(service: ServiceKey, portName: string, protocol: Protocol): ServicePortKey {
  return `${service}:${portName}/${protocol}` as ServicePortKey;
}

/** The key of an EndpointSlice. */
export function sliceKey(namespace: string, name: string): SliceKey {
  return `${namespace}/${name}` as SliceKey;
}

/** A Node name as the API spells it. */
export function nodeName(text: string): NodeName {
  return text as NodeName;
}
