import type { Cidr, ForwardingTable, IpFamily, PodDetector } from '@switchyard/core';

export interface RenderOptions {
  readonly ipFamily: IpFamily;
  /** The bit by which a packet is marked for masquerading (`iptables.masqueradeBit`), as a number such as 0x4000. */
  readonly masqueradeMark: number;
  readonly nodePortCidrs: readonly Cidr[];
  readonly localhostNodePorts: boolean;
  /** Whether packets that conntrack calls INVALID are dropped. False where conntrack is liberal about TCP windows. */
  readonly dropInvalid: boolean;
  /** iptables knows `MASQUERADE --random-fully` (1.6.2). */
  readonly randomFully: boolean;
  /** Whether rules use counters of netfilter accounting (`-m nfacct`). */
  readonly nfacct: boolean;
  /** Whether rules of endpoints carry comments: not with more than 1,000 endpoints, as in kube-proxy. */
  readonly comments: boolean;
  readonly podDetector: PodDetector;
}

/** Options that do not come from the forwarding table. */
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
