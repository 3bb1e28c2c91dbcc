import type { Clock, Logger, Millis } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import type { PacketCounters } from '@switchyard/netfilter';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';

/** The machine as this backend uses it. */
export interface IptablesHost {
  /** Runs `iptables-restore` and its relatives, in the network namespace to be programmed. */
  readonly runner: CommandRunner;
  readonly logger: Logger;
  /** Which of the kernel's two iptables is programmed. `auto`: the one in use, detected by the kubelet's hint chains. */
  readonly variant: IptablesVariant | 'auto';
  /** `iptables.masqueradeBit`, 0 to 31. */
  readonly masqueradeBit: number;
  readonly localhostNodePorts: boolean;
  /** conntrack is liberal about TCP windows (`conntrack.tcpBeLiberal`, or the kernel's setting): INVALID is not dropped. */
  readonly tcpBeLiberal: boolean;
  /** How often legacy rules are read to notice foreign changes, and stale chains of large clusters removed. */
  readonly syncPeriod: Millis;
  /** Path of the network namespace whose nftables events are watched; default: the process's own. `runner` must run in the same. */
  readonly netns?: string | undefined;
  /** Counters of netfilter accounting; default: the kernel's, by netlink, in `netns`. Fakes have their own. */
  readonly packetCounters?: PacketCounters;
  /** Default: the machine's. */
  readonly clock?: Clock;
}
