import { type Field, fieldsOf, ignored } from './field.ts';

/** Fields that no mode of this agent reads. They are decoded and written out again, but not checked. */
export const otherModeFields: readonly Field[] = [
  ...fieldsOf(
    { modes: 'ipvs', change: 'none', meaning: ignored('only the ipvs mode reads it, which this agent does not have') },
    [
      ['ipvs.syncPeriod', 'duration', 30_000, 'maximum interval between two syncs'],
      ['ipvs.minSyncPeriod', 'duration', 0, 'minimum interval between two syncs'],
      ['ipvs.scheduler', 'text', '', 'scheduler of ipvs; empty: round robin'],
      ['ipvs.excludeCIDRs', 'list', [], 'CIDRs whose virtual servers are not touched'],
      ['ipvs.strictARP', 'boolean', false, 'do not answer ARP for addresses of kube-ipvs0'],
      ['ipvs.tcpTimeout', 'duration', 0, 'idle timeout of TCP connections'],
      ['ipvs.tcpFinTimeout', 'duration', 0, 'idle timeout of TCP connections after a FIN'],
      ['ipvs.udpTimeout', 'duration', 0, 'idle timeout of UDP flows'],
    ],
  ),
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
