import type { Cidr, ForwardingTable, IpFamily, PodDetector } from '@switchyard/core';

/** What rules look like, besides what the forwarding table says of single Services. The same for all Services of a family. */
export interface RenderOptions {
  readonly ipFamily: IpFamily;
  /** The bit by which a packet is marked for masquerading (`iptables.masqueradeBit`), as a number such as 0x4000. */
  readonly masqueradeMark: number;
  /** `ForwardingTable.nodePortCidrs`. */
  readonly nodePortCidrs: readonly Cidr[];
  /** `ForwardingTable.nodePortsOnLoopback` is `kernel`. */
  readonly localhostNodePorts: boolean;
  /** Packets that conntrack calls INVALID are dropped; not where it is told to be liberal. */
  readonly dropInvalid: boolean;
  /** iptables knows `MASQUERADE --random-fully` (1.6.2). */
  readonly randomFully: boolean;
  /** Counters of netfilter accounting exist and are used by rules (`-m nfacct`). */
  readonly nfacct: boolean;
  /**
   * Rules of endpoints carry comments. Not on large clusters, as kube-proxy (over 1,000 endpoints); rules that there are a few
   * of per Service keep theirs.
   */
  readonly comments: boolean;
  readonly podDetector: PodDetector;
}

/** What the forwarding table has no part in. */
export type RenderChoices = Omit<RenderOptions, 'ipFamily' | 'nodePortCidrs' | 'localhostNodePorts' | 'podDetector'>;

/** Options for a table's rules. When they change, all Services are rendered anew. */
export function renderOptions(table: ForwardingTable, choices: RenderChoices): RenderOptions {
  return {
    ...choices,
    ipFamily: table.ipFamily,
    nodePortCidrs: table.nodePortCidrs,
    localhostNodePorts: table.nodePortsOnLoopback === 'kernel',
    podDetector: table.podDetector,
  };
}
