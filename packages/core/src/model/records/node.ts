import type { IpAddress } from '../ip/address.ts';
import type { Cidr } from '../ip/cidr.ts';
import type { NodeName } from './keys.ts';

/** The fields of a Node the dataplane uses. */
export interface NodeRecord {
  readonly name: NodeName;
  /** Label `topology.kubernetes.io/zone`; empty when not set. */
  readonly zone: string;
  /** `status.addresses` of type InternalIP, then ExternalIP; valid ones, canonical. */
  readonly addresses: readonly IpAddress[];
  readonly podCidrs: readonly Cidr[];
  /** KEP-3836: false when tainted `ToBeDeletedByClusterAutoscaler` or being deleted. */
  readonly isEligible: boolean;
}
