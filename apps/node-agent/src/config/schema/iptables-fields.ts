import { between, notNegative, positive } from './checks.ts';
import type { Field, Meaning } from './field.ts';

const same: Meaning = { kind: 'same' };

/** What the iptables mode reads besides what all modes do. */
export const iptablesFields: readonly Field[] = [
  {
    path: 'iptables.masqueradeBit',
    type: 'integer',
    default: 14,
    isZeroKept: true,
    isAlwaysChecked: true,
    modes: 'iptables, ipvs',
    meaning: same,
    change: 'restart',
    help: 'bit of the packet mark that asks for masquerading',
    check: between(0, 31),
  },
  {
    path: 'iptables.masqueradeAll',
    type: 'boolean',
    default: false,
    modes: 'iptables, ipvs',
    meaning: same,
    change: 'live',
    help: 'masquerade all traffic to cluster IPs',
  },
  {
    path: 'iptables.localhostNodePorts',
    type: 'boolean',
    default: true,
    isZeroKept: true,
    modes: 'iptables',
    meaning: same,
    change: 'restart',
    help: 'NodePorts answer on 127.0.0.1, for which route_localnet is set; only where nodePortAddresses lets them; IPv4 only',
  },
  {
    path: 'iptables.syncPeriod',
    type: 'duration',
    default: 30_000,
    modes: 'iptables',
    meaning: {
      kind: 'better',
      how: 'the kernel is read back every hour; changes by other programs are reverted sooner',
    },
    change: 'live',
    help: 'longest wait before a failed apply is tried again; /healthz fails when a change waits twice as long',
    check: positive,
  },
  {
    path: 'iptables.minSyncPeriod',
    type: 'duration',
    default: 1000,
    modes: 'iptables',
    meaning: same,
    change: 'live',
    help: 'least time between two applies',
    check: notNegative,
  },
];
