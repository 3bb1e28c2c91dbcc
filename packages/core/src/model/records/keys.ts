import type { Branded } from '../../base/brand.ts';
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

/** The Service by which a cluster publishes its API servers. */
export const apiServerService: ServiceKey = serviceKey('default', 'kubernetes');

/** The key of one Service port. */
export function servicePortKey(service: ServiceKey, portName: string, protocol: Protocol): ServicePortKey {
  return `${service}:${portName}/${protocol}` as ServicePortKey;
}

/** Parts of a Service port's key. */
export interface ServicePortParts {
  readonly namespace: string;
  readonly name: string;
  /** Empty for an unnamed port. */
  readonly portName: string;
  readonly protocol: Protocol;
}

/** Splits a key into its parts. No name in it can contain a slash or a colon. */
export function servicePortParts(key: ServicePortKey): ServicePortParts {
  const slash = key.indexOf('/');
  const colon = key.indexOf(':', slash);
  const lastSlash = key.indexOf('/', colon);
  return {
    namespace: key.slice(0, slash),
    name: key.slice(slash + 1, colon),
    portName: key.slice(colon + 1, lastSlash),
    protocol: key.slice(lastSlash + 1) as Protocol, // the only function that makes keys puts it there
  };
}

/** The key of an EndpointSlice. */
export function sliceKey(namespace: string, name: string): SliceKey {
  return `${namespace}/${name}` as SliceKey;
}

/** A Node name as the API spells it. */
export function nodeName(text: string): NodeName {
  return text as NodeName;
}
