import type { DataplaneTraits } from './dataplane-traits.ts';
import type { Flow } from './explain-types.ts';
import type { ForwardingTable, Frontend, SourceClass } from './forwarding-table.ts';

/**
 * Whether a socket of this node goes to the endpoint by itself, so that no packet ever names the frontend and nothing is
 * masqueraded: where sockets are translated, all that is sent here except SCTP and frontends with source ranges. A socket
 * has no address before it is connected, so rules carry those.
 */
export function isSentBySocket(flow: Flow, frontend: Frontend, traits: DataplaneTraits): boolean {
  return frontend.allowedSources === 'any' && isServedBySocket(flow, traits);
}

/** The same where no frontend matches: the socket itself is refused. */
export function isServedBySocket(flow: Flow, { translation }: DataplaneTraits): boolean {
  if (translation !== 'sockets' || flow.protocol === 'SCTP') return false;
  return flow.isSentHere ?? flow.from !== 'outside';
}

/**
 * The class of a socket. It is known by its network namespace, not by an address or an interface, so each that is not the node's
 * own is a pod's wherever pods can be told by anything at all.
 */
export function socketClassOf({ podDetector }: ForwardingTable, { from }: Flow): SourceClass {
  if (from === 'node') return 'node';
  return podDetector.kind === 'none' ? 'outside' : 'pod';
}
