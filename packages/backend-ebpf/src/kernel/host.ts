import type { NftablesHost } from '@switchyard/backend-nftables';

/** Forwards traffic from outside the node: programs on its uplinks, or rules of nftables. `auto`: programs where the kernel can. */
export type NorthSouth = 'auto' | 'tc' | 'nftables';

/** Served sockets: all below the cgroup, or only those of the host's network namespace. */
export type SocketLb = 'all' | 'host';

/** The machine, for this backend and for the nftables backend that it uses as a library. */
export interface EbpfHost extends Omit<NftablesHost, 'tableNames'> {
  /** Directory of cgroup2 below which sockets are served; undefined: the root of the machine's cgroup2 mount. */
  readonly cgroup: string | undefined;
  /** Mount point of bpffs. The backend mounts one if there is none. */
  readonly bpffs: string;
  /** Name patterns of the devices through which clients outside the node arrive; none: the backend finds them. */
  readonly interfaces: readonly string[];
  readonly northSouth: NorthSouth;
  readonly socketLb: SocketLb;
}
