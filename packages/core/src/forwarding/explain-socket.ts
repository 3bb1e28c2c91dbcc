import type { DataplaneMode, Flow } from './explain-types.ts';
import type { ForwardingTable, Frontend, SourceClass } from './forwarding-table.ts';

/**
 * Whether a socket of this node goes to the endpoint by itself, so that no packet ever names the frontend and nothing is
 * masqueraded: in the eBPF mode whatever is sent here, but for SCTP and for frontends with source ranges. A socket cannot tell
 * its address before it is connected, so rules of nftables carry those, as they do in the nftables mode.
 */
export function isSentBySocket(flow: Flow, frontend: Frontend, mode: DataplaneMode): boolean {
  if (mode !== 'ebpf' || flow.protocol === 'SCTP' || frontend.allowedSources !== 'any') return false;
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
