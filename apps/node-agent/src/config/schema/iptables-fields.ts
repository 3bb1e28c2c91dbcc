import { between, notNegative, positive } from './checks.ts';
import { better, type Field, fieldsOf } from './field.ts';

/** Fields of the iptables mode only. */
export const iptablesFields: readonly Field[] = fieldsOf({ modes: 'iptables', change: 'live' }, [
  [
    'iptables.masqueradeBit',
    'integer',
    14,
    'bit of the packet mark by which packets are masqueraded',
    { modes: 'iptables, ipvs', change: 'restart', isZeroKept: true, isAlwaysChecked: true, check: between(0, 31) },
  ],
  ['iptables.masqueradeAll', 'boolean', false, 'masquerade all traffic to cluster IPs', { modes: 'iptables, ipvs' }],
  [
    'iptables.localhostNodePorts',
    'boolean',
    true,
    'NodePorts answer on 127.0.0.1, for which route_localnet is set; only where nodePortAddresses lets them; IPv4 only',
    { change: 'restart', isZeroKept: true },
  ],
  [
    'iptables.syncPeriod',
    'duration',
    30_000,
    'maximum interval between retries of a failed apply; /healthz fails when a change waits twice as long',
    {
      meaning: better('the kernel is read back every hour; changes by other programs are reverted sooner'),
      check: positive,
    },
  ],
  ['iptables.minSyncPeriod', 'duration', 1000, 'minimum interval between two applies', { check: notNegative }],
]);
