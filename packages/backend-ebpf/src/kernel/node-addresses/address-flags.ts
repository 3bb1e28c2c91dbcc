import {
  type Cidr,
  cidrContains,
  type ForwardingTable,
  type IpAddress,
  ipFamilyOf,
  loopbackOf,
  parseCidr,
} from '@switchyard/core';
import { nodeAddressFlags } from '../../render/layouts.ts';

const linkLocal: Cidr = parseCidr('fe80::/10');

/**
 * Content of `node_addresses` for a table: all local addresses except loopback and IPv6 link-local ones, with a flag for NodePort
 * addresses.
 */
export function addressFlags(
  local: readonly IpAddress[],
  { nodePortCidrs }: Pick<ForwardingTable, 'nodePortCidrs'>,
): ReadonlyMap<IpAddress, number> {
  const isLeftOut = (ip: IpAddress): boolean =>
    cidrContains(loopbackOf(ipFamilyOf(ip)), ip) || cidrContains(linkLocal, ip);
  const flagsOf = (ip: IpAddress): number =>
    nodePortCidrs.some((cidr) => cidrContains(cidr, ip)) ? nodeAddressFlags.nodePort : 0;
  return new Map(local.filter((ip) => !isLeftOut(ip)).map((ip) => [ip, flagsOf(ip)]));
}
