import { wrongArgument } from '../../base/argument.ts';
import type { Branded } from '../../base/brand.ts';
import { type Protocol, tryParseProtocol } from '../ip/port.ts';

/** `namespace/name` of a Service. */
export type ServiceKey = Branded<string, 'ServiceKey'>;
/** `namespace/name:port/TCP`: the identity of what is load-balanced. The port name may be empty. */
export type ServicePortKey = Branded<string, 'ServicePortKey'>;
/** `namespace/name` of an EndpointSlice. */
export type SliceKey = Branded<string, 'SliceKey'>;
/** Name of a Node object, lower case. */
export type NodeName = Branded<string, 'NodeName'>;

/** Without a helper of `base`: the agent calls it for each object. */
function requireText(name: string, value: unknown): void {
  if (typeof value !== 'string') throw wrongArgument(name, 'a text', value);
}

/** Concatenates into one text. The result of `+` refers to its parts, and keeps doing so: a compared key takes twice the memory. */
function flat(...parts: readonly string[]): string {
  return parts.join('');
}

/** The key of the Service `namespace/name`. Throws `UsageError` for a part that is no text. */
export function serviceKey(namespace: string, name: string): ServiceKey {
  requireText('serviceKey: namespace', namespace);
  requireText('serviceKey: name', name);
  return flat(namespace, '/', name) as ServiceKey;
}

/** The Service by which a cluster publishes its API servers. */
export const apiServerService: ServiceKey = serviceKey('default', 'kubernetes');

/** The key of one Service port. Throws `UsageError` for a part that is no text, and for an unknown protocol. */
export function servicePortKey(service: ServiceKey, portName: string, protocol: Protocol): ServicePortKey {
  requireText('servicePortKey: service', service);
  requireText('servicePortKey: portName', portName);
  if (tryParseProtocol(protocol) === undefined)
    throw wrongArgument('servicePortKey: protocol', 'TCP, UDP or SCTP', protocol);
  return flat(service, ':', portName, '/', protocol) as ServicePortKey;
}

/** Parts of a Service port's key. */
export interface ServicePortParts {
  readonly namespace: string;
  readonly name: string;
  /** Empty for an unnamed port. */
  readonly portName: string;
  readonly protocol: Protocol;
}

/** Splits a key into its parts. No name in it can contain a slash or a colon. Throws `UsageError` for what is no such key. */
export function servicePortParts(key: ServicePortKey): ServicePortParts {
  requireText('servicePortParts: key', key);
  const slash = key.indexOf('/');
  const colon = key.indexOf(':', slash);
  const lastSlash = key.indexOf('/', colon);
  if (slash < 0 || colon < 0 || lastSlash < 0)
    throw wrongArgument('servicePortParts: key', 'namespace/name:port/TCP', key);
  return {
    namespace: key.slice(0, slash),
    name: key.slice(slash + 1, colon),
    portName: key.slice(colon + 1, lastSlash),
    protocol: key.slice(lastSlash + 1) as Protocol, // the only function that makes keys puts it there
  };
}

/** The key of an EndpointSlice. Throws `UsageError` for a part that is no text. */
export function sliceKey(namespace: string, name: string): SliceKey {
  requireText('sliceKey: namespace', namespace);
  requireText('sliceKey: name', name);
  return flat(namespace, '/', name) as SliceKey;
}

/** A Node name as the API spells it. Throws `UsageError` for what is no text; an empty one is the name of no Node. */
export function nodeName(text: string): NodeName {
  requireText('nodeName: text', text);
  return text as NodeName;
}
