import type { NftablesHost } from '@switchyard/backend-nftables';

/** Who forwards what comes from outside the node: programs on its uplinks, or rules of nftables. `auto`: programs where the kernel can. */
export type NorthSouth = 'auto' | 'tc' | 'nftables';

/** Whose sockets are served: all below the cgroup, or only those of the host's network namespace. */
export type SocketLb = 'all' | 'host';

/** What this backend needs of the machine. What the nftables backend needs is for its library, which carries what programs do not. */
export interface EbpfHost extends Omit<NftablesHost, 'tableNames'> {
  /** Directory of cgroup2 below which sockets are served; undefined: the root of the machine's cgroup2 mount. */
  readonly cgroup: string | undefined;
  /** Where bpffs is, or is to be mounted. */
  readonly bpffs: string;
  /** Patterns of names of devices on which clients outside the node arrive; none: they are found. */
  readonly interfaces: readonly string[];
  readonly northSouth: NorthSouth;
  readonly socketLb: SocketLb;
}
