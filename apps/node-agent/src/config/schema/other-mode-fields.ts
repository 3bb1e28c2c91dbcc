import { between } from './checks.ts';
import type { Field, Meaning } from './field.ts';

const ignored = (why: string): Meaning => ({ kind: 'ignored', why });
const iptablesOnly = ignored('only the iptables mode reads it, and the mode is nftables');
const ipvsOnly = ignored('only the ipvs mode reads it, and the mode is nftables');
const windowsOnly = ignored('only Windows reads it');

type Row = readonly [
  path: string,
  type: Field['type'],
  value: Field['default'],
  help: string,
  rest?: Pick<Field, 'isZeroKept' | 'check'>,
];

const fields = (modes: string, meaning: Meaning, rows: readonly Row[]): readonly Field[] =>
  rows.map(([path, type, value, help, rest]) => ({
    path,
    type,
    default: value,
    modes,
    meaning,
    change: 'none',
    help,
    ...rest,
  }));

/**
 * Fields that no mode of ours reads. They are decoded and written out again; what they say is checked only where kube-proxy
 * does so in the nftables mode, too.
 */
export const otherModeFields: readonly Field[] = [
  ...fields('iptables, ipvs', iptablesOnly, [
    [
      'iptables.masqueradeBit',
      'integer',
      14,
      'bit of the packet mark that asks for masquerading',
      { isZeroKept: true, check: between(0, 31) },
    ],
    ['iptables.masqueradeAll', 'boolean', false, 'masquerade all traffic to cluster IPs'],
  ]),
  ...fields('iptables', iptablesOnly, [
    ['iptables.localhostNodePorts', 'boolean', true, 'NodePorts answer on 127.0.0.1', { isZeroKept: true }],
    ['iptables.syncPeriod', 'duration', 30_000, 'longest time between two syncs'],
    ['iptables.minSyncPeriod', 'duration', 1000, 'least time between two syncs'],
  ]),
  ...fields('ipvs', ipvsOnly, [
    ['ipvs.syncPeriod', 'duration', 30_000, 'longest time between two syncs'],
    ['ipvs.minSyncPeriod', 'duration', 0, 'least time between two syncs'],
    ['ipvs.scheduler', 'text', '', 'how an endpoint is chosen; empty: round robin'],
    ['ipvs.excludeCIDRs', 'list', [], 'virtual servers that are left alone'],
    ['ipvs.strictARP', 'boolean', false, 'no answers to ARP for addresses of kube-ipvs0'],
    ['ipvs.tcpTimeout', 'duration', 0, 'idle time of a TCP connection'],
    ['ipvs.tcpFinTimeout', 'duration', 0, 'idle time of a TCP connection after a FIN'],
    ['ipvs.udpTimeout', 'duration', 0, 'idle time of a UDP flow'],
  ]),
  ...fields('Windows', windowsOnly, [
    ['winkernel.networkName', 'text', '', 'HNS network'],
    ['winkernel.sourceVip', 'text', '', 'source address for NAT'],
    ['winkernel.enableDSR', 'boolean', false, 'direct server return'],
    ['winkernel.rootHnsEndpointName', 'text', '', 'HNS endpoint of the root namespace'],
    ['winkernel.forwardHealthCheckVip', 'boolean', false, 'health checks to the VIP are forwarded'],
    ['windowsRunAsService', 'boolean', false, 'runs as a Windows service'],
  ]),
  ...fields('none', ignored('no mode of any kube-proxy since 1.26 reads it'), [
    ['portRange', 'text', '', 'ports of the userspace proxy, which is gone'],
  ]),
];
