import type { IpAddress, IpFamily } from '../ip/address.ts';
import { type Cidr, cidrContains, cidrFamilyOf, hostCidr, isEverything } from '../ip/cidr.ts';

/** What the sources allowed to reach a Service's load-balancer IPs depend on. */
export interface SourceRangesInput {
  readonly ipFamily: IpFamily;
  /** `loadBalancerSourceRanges`, both families. */
  readonly ranges: readonly Cidr[];
  /** The load-balancer IPs of this family that are captured. */
  readonly vips: readonly IpAddress[];
  /** Our Node's primary address of this family, if known. */
  readonly nodeIp: IpAddress | undefined;
}

/**
 * Sources that may use a Service's load-balancer IPs, sorted; `any` if there is no range of this
 * family, or one that covers it.
 *
 * If a range contains this node's own address, the VIPs themselves are allowed too: where a VIP is
 * also an address of the node, the node's own requests to it carry the VIP as their source.
 */
export function allowedSources(input: SourceRangesInput): 'any' | readonly Cidr[] {
  const ranges = input.ranges.filter((range) => cidrFamilyOf(range) === input.ipFamily);
  if (ranges.length === 0 || ranges.some(isEverything)) return 'any';
  const { nodeIp } = input;
  const allowsNode = nodeIp !== undefined && ranges.some((range) => cidrContains(range, nodeIp));
  return [...new Set(allowsNode ? [...ranges, ...input.vips.map(hostCidr)] : ranges)].sort();
}
