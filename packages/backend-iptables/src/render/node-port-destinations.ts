import { type Cidr, cidrLength, cidrsOverlap, isEverything, loopbackOf } from '@switchyard/core';
import type { RenderOptions } from './options.ts';

/** Addresses of this node on which NodePorts answer, in the two places of a rule where iptables prints such conditions. */
export interface NodePortDestination {
  /** Before the protocol: `-d 192.0.2.0/24`; empty for all. */
  readonly address: string;
  /** Behind the comment; what keeps other nodes' addresses out, and loopback where it is no NodePort address. */
  readonly type: string;
}

const local = '-m addrtype --dst-type LOCAL';

/** Where NodePorts answer: one of these must hold. Empty: nowhere. */
export function nodePortDestinations(
  options: Pick<RenderOptions, 'ipFamily' | 'nodePortCidrs' | 'localhostNodePorts'>,
): readonly NodePortDestination[] {
  const loopback = loopbackOf(options.ipFamily);
  return options.nodePortCidrs.flatMap((cidr): readonly NodePortDestination[] => {
    if (options.localhostNodePorts || !cidrsOverlap(cidr, loopback)) return [{ address: inside(cidr), type: local }];
    if (isEverything(cidr)) return [{ address: `! -d ${loopback}`, type: local }];
    if (cidrLength(cidr) >= cidrLength(loopback)) return [];
    // A rule has one destination, so loopback within a range is taken out by a match of its own.
    return [{ address: inside(cidr), type: `${local} ${notInRange[options.ipFamily]}` }];
  });
}

const notInRange = {
  IPv4: '-m iprange ! --dst-range 127.0.0.0-127.255.255.255',
  IPv6: '-m iprange ! --dst-range ::1-::1',
} as const;

function inside(cidr: Cidr): string {
  return isEverything(cidr) ? '' : `-d ${cidr}`;
}
