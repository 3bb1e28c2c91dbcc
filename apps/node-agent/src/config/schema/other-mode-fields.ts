import { type Field, fieldsOf, ignored } from './field.ts';

/** Fields that no mode of ours reads. They are decoded and written out again; what they say is not checked. */
export const otherModeFields: readonly Field[] = [
  ...fieldsOf({ modes: 'ipvs', change: 'none', meaning: ignored('only the ipvs mode reads it, which is not here') }, [
    ['ipvs.syncPeriod', 'duration', 30_000, 'longest time between two syncs'],
    ['ipvs.minSyncPeriod', 'duration', 0, 'least time between two syncs'],
    ['ipvs.scheduler', 'text', '', 'how an endpoint is chosen; empty: round robin'],
    ['ipvs.excludeCIDRs', 'list', [], 'virtual servers that are left alone'],
    ['ipvs.strictARP', 'boolean', false, 'no answers to ARP for addresses of kube-ipvs0'],
    ['ipvs.tcpTimeout', 'duration', 0, 'idle time of a TCP connection'],
    ['ipvs.tcpFinTimeout', 'duration', 0, 'idle time of a TCP connection after a FIN'],
    ['ipvs.udpTimeout', 'duration', 0, 'idle time of a UDP flow'],
  ]),
  ...fieldsOf({ modes: 'Windows', change: 'none', meaning: ignored('only Windows reads it') }, [
    ['winkernel.networkName', 'text', '', 'HNS network'],
    ['winkernel.sourceVip', 'text', '', 'source address for NAT'],
    ['winkernel.enableDSR', 'boolean', false, 'direct server return'],
    ['winkernel.rootHnsEndpointName', 'text', '', 'HNS endpoint of the root namespace'],
    ['winkernel.forwardHealthCheckVip', 'boolean', false, 'health checks to the VIP are forwarded'],
    ['windowsRunAsService', 'boolean', false, 'runs as a Windows service'],
  ]),
  ...fieldsOf({ modes: 'none', change: 'none', meaning: ignored('no mode of any kube-proxy since 1.26 reads it') }, [
    ['portRange', 'text', '', 'ports of the userspace proxy, which is gone'],
  ]),
];
