import type { Field, Meaning } from './field.ts';

const ignored = (why: string): Meaning => ({ kind: 'ignored', why });
const ipvsOnly = ignored('only the ipvs mode reads it, which is not here');
const windowsOnly = ignored('only Windows reads it');

type Row = readonly [path: string, type: Field['type'], value: Field['default'], help: string];

const fields = (modes: string, meaning: Meaning, rows: readonly Row[]): readonly Field[] =>
  rows.map(([path, type, value, help]) => ({
    path,
    type,
    default: value,
    modes,
    meaning,
    change: 'none',
    help,
  }));

/** Fields that no mode of ours reads. They are decoded and written out again; what they say is not checked. */
export const otherModeFields: readonly Field[] = [
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
