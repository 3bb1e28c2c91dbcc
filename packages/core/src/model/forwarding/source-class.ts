import { type IpAddress, requireIp } from '../ip/address.ts';
import { cidrContains } from '../ip/cidr.ts';
import { assertNever, objectArgument } from '../../base/argument.ts';
import { checkTable } from './check-input.ts';
import type { ForwardingTable, PodDetector, SourceClass, Frontend } from './forwarding-table.ts';
import type { DataplaneTraits } from './dataplane-traits.ts';
import type { Flow } from './explain-types.ts';

/**
 * Returns the source class of an address in the kernel. The pod detector has precedence, so the node's own address on the pod
 * bridge counts as a pod. Packets of the node itself have no `incomingInterface`; they are never a pod's if pods are detected
 * by interface. Throws `UsageError` for what is no canonical address.
 */
export function sourceClassOf(
  table: ForwardingTable,
  source: IpAddress,
  isNodeAddress: boolean,
  incomingInterface?: string,
): SourceClass {
  checkTable('sourceClassOf: table', table);
  requireIp('sourceClassOf: source', source);
  if (isFromPod(table.podDetector, source, incomingInterface ?? '')) return 'pod';
  return isNodeAddress ? 'node' : 'outside';
}

function isFromPod(detector: PodDetector, source: IpAddress, incomingInterface: string): boolean {
  switch (detector.kind) {
    case 'none':
      return false;
    case 'cidr':
      return cidrContains(detector.cidr, source);
    case 'interface':
      return incomingInterface === detector.name;
    case 'interfacePrefix':
      return incomingInterface.startsWith(detector.prefix);
    default:
      return assertNever(detector);
  }
}

/**
 * Whether a socket of this node connects to the endpoint itself, so that no packet names the frontend and nothing is
 * masqueraded. With translated sockets this is all traffic of this node except SCTP and frontends with source ranges. A
 * socket has no address before it is connected, so rules carry those. Throws `UsageError` for an argument that is no object.
 */
export function isSentBySocket(flow: Flow, frontend: Frontend, traits: DataplaneTraits): boolean {
  objectArgument('isSentBySocket: frontend', frontend);
  return frontend.allowedSources === 'any' && isServedBySocket(flow, traits);
}

/** The same where no frontend matches: connecting the socket fails. */
export function isServedBySocket(flow: Flow, traits: DataplaneTraits): boolean {
  objectArgument('isServedBySocket: flow', flow);
  const { translation } = objectArgument('isServedBySocket: traits', traits);
  if (translation !== 'sockets' || flow.protocol === 'SCTP') return false;
  return flow.isSentHere ?? flow.from !== 'outside';
}

/**
 * Returns the source class of a socket, which depends on its network namespace, not on an address or an interface. Every
 * socket outside the node's namespace is a pod's, if any pod detector is set.
 */
export function socketClassOf({ podDetector }: ForwardingTable, { from }: Flow): SourceClass {
  if (from === 'node') return 'node';
  return podDetector.kind === 'none' ? 'outside' : 'pod';
}
