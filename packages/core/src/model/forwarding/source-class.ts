import { type IpAddress, requireIp } from '../ip/address.ts';
import { cidrContains } from '../ip/cidr.ts';
import { assertNever } from '../../base/result.ts';
import { checkTable } from './check-table-input.ts';
import type { ForwardingTable, PodDetector, SourceClass } from './forwarding-table.ts';

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
