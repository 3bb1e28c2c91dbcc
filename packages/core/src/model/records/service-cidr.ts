import type { Cidr } from '../ip/cidr.ts';

/** A ServiceCIDR object: the ranges cluster IPs are allocated from. */
export interface ServiceCidrRecord {
  readonly name: string;
  readonly cidrs: readonly Cidr[];
}
