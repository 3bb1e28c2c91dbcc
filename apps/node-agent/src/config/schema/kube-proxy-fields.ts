import { between, nodePortRanges, notNegative, oneOf, positive } from './checks.ts';
import { better, fieldsOf, ignored, type Schema, type Field } from './field.ts';
import { processFields } from './process-fields.ts';

const iptablesFields: readonly Field[] = fieldsOf({ modes: 'iptables', change: 'live' }, [
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

/** Fields that no mode of this agent reads. They are decoded and written out again, but not checked. */
const otherModeFields: readonly Field[] = [
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

const second = 1000;
const hour = 3600 * second;

const mode = fieldsOf({ modes: 'all', change: 'restart' }, [
  [
    'mode',
    'text',
    '',
    'dataplane: iptables (default when empty), nftables, or ebpf',
    {
      meaning: {
        kind: 'refused',
        why: 'accepts iptables (default when empty), nftables, and ebpf (not in kube-proxy); refuses ipvs and kernelspace',
      },
    },
  ],
]);

const nftables = fieldsOf({ modes: 'nftables, ebpf', change: 'live' }, [
  [
    'nftables.masqueradeBit',
    'integer',
    14,
    'bit of the packet mark by which packets are masqueraded',
    {
      modes: 'nftables',
      meaning: ignored('the rules of this mode use no bit of the packet mark'),
      isZeroKept: true,
      check: between(0, 31),
    },
  ],
  ['nftables.masqueradeAll', 'boolean', false, 'masquerade all traffic to cluster IPs'],
  [
    'nftables.syncPeriod',
    'duration',
    30 * second,
    'maximum interval between retries of a failed apply; /healthz fails when a change waits twice as long',
    {
      meaning: better('the kernel is read back every hour, and at once when another program changes the table'),
      check: positive,
    },
  ],
  [
    'nftables.minSyncPeriod',
    'duration',
    0,
    'minimum interval between two applies',
    {
      meaning: better(
        "unset is the dataplane's own minimum (some milliseconds: an apply costs as much as its change), not 1s",
      ),
      check: notNegative,
    },
  ],
]);

const traffic = fieldsOf({ modes: 'Linux', change: 'restart' }, [
  [
    'detectLocalMode',
    'text',
    'ClusterCIDR',
    'how to recognize pods: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix',
    {
      meaning: better('NodeCIDR follows changed ranges of the Node; kube-proxy ends'),
      check: oneOf('ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix'),
    },
  ],
  ['detectLocal.bridgeInterface', 'text', '', 'name of the bridge of the pods; required by BridgeInterface'],
  [
    'detectLocal.interfaceNamePrefix',
    'text',
    '',
    "prefix of the names of the pods' interfaces; required by InterfaceNamePrefix",
  ],
  [
    'clusterCIDR',
    'text',
    '',
    'CIDRs of the pods of the cluster, one per IP family; without one, pods of that family are not recognized; for ClusterCIDR',
    { change: 'live', hasAddresses: true },
  ],
  [
    'nodePortAddresses',
    'list',
    [],
    "addresses on which NodePorts answer: CIDRs and the keywords 'primary' (the Node's primary addresses), 'localhost' and 'all', in any combination (KEP-6032); unset: 'all' in the iptables mode, 'primary' in the others; without 'primary', a family without a listed CIDR answers on all its addresses",
    {
      modes: 'all',
      meaning: better('the primary addresses follow the Node'),
      change: 'live',
      hasAddresses: true,
      check: nodePortRanges,
    },
  ],
]);

const kernel = fieldsOf({ modes: 'Linux', change: 'restart' }, [
  [
    'oomScoreAdj',
    'integer',
    -999,
    'oom_score_adj of the process; with a lower value the kernel kills it later when memory is short',
    { isZeroKept: true, check: between(-1000, 1000) },
  ],
  [
    'conntrack.maxPerCore',
    'integer',
    32_768,
    'maximum number of tracked connections per CPU core; 0 keeps the limit of the kernel and ignores min',
    { isZeroKept: true, check: notNegative },
  ],
  [
    'conntrack.min',
    'integer',
    131_072,
    'minimum for the limit of tracked connections',
    { isZeroKept: true, check: notNegative },
  ],
  [
    'conntrack.tcpEstablishedTimeout',
    'duration',
    24 * hour,
    'idle timeout of established TCP connections; 0 keeps the value of the kernel',
    { isZeroKept: true, check: notNegative },
  ],
  [
    'conntrack.tcpCloseWaitTimeout',
    'duration',
    hour,
    'idle timeout of TCP connections in CLOSE_WAIT; 0 keeps the value of the kernel',
    { isZeroKept: true, check: notNegative },
  ],
  [
    'conntrack.udpTimeout',
    'duration',
    0,
    'idle timeout of UDP flows without a reply; 0 keeps the value of the kernel',
    { check: notNegative },
  ],
  [
    'conntrack.udpStreamTimeout',
    'duration',
    0,
    'idle timeout of UDP flows with replies; 0 keeps the value of the kernel',
    { check: notNegative },
  ],
  ['conntrack.tcpBeLiberal', 'boolean', false, 'treat TCP packets outside the window as valid'],
]);

/** kube-proxy's configuration file, complete. */
export const kubeProxySchema: Schema = {
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  fields: [...processFields, ...mode, ...nftables, ...traffic, ...iptablesFields, ...kernel, ...otherModeFields],
};
