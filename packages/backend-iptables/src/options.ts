import type { IpFamily, PodDetector } from '@switchyard/core';

/** What rules look like, besides what the forwarding table says. The same for all Services of a family. */
export interface RenderOptions {
  readonly ipFamily: IpFamily;
  /** The bit by which a packet is marked for masquerading (`iptables.masqueradeBit`), as a number such as 0x4000. */
  readonly masqueradeMark: number;
  /** NodePorts answer on 127.0.0.0/8 as well (`iptables.localhostNodePorts`); IPv4 only. */
  readonly localhostNodePorts: boolean;
  /** Packets that conntrack calls INVALID are dropped; not where it is told to be liberal. */
  readonly dropInvalid: boolean;
  /** iptables knows `MASQUERADE --random-fully` (1.6.2). */
  readonly randomFully: boolean;
  /** Counters of netfilter accounting exist and are used by rules (`-m nfacct`). */
  readonly nfacct: boolean;
  /** Rules carry comments. Not on large clusters, as kube-proxy (over 1,000 endpoints). */
  readonly comments: boolean;
  readonly podDetector: PodDetector;
}
