import { between, nodePortRanges, notNegative, oneOf, positive } from './checks.ts';
import { better, fieldsOf, ignored, type Schema } from './field.ts';
import { iptablesFields } from './iptables-fields.ts';
import { otherModeFields } from './other-mode-fields.ts';
import { processFields } from './process-fields.ts';

const second = 1000;
const hour = 3600 * second;

const mode = fieldsOf({ modes: 'all', change: 'restart' }, [
  [
    'mode',
    'text',
    '',
    'how the kernel is programmed: iptables (default when empty), nftables, or ebpf',
    {
      meaning: {
        kind: 'refused',
        why: 'takes iptables (default when empty), nftables, and ebpf, which kube-proxy lacks; refuses ipvs and kernelspace',
      },
    },
  ],
]);

const nftables = fieldsOf({ modes: 'nftables, ebpf', change: 'live' }, [
  [
    'nftables.masqueradeBit',
    'integer',
    14,
    'bit of the packet mark that asks for masquerading',
    {
      modes: 'nftables',
      meaning: ignored('our rules need no bit of the packet mark'),
      isZeroKept: true,
      check: between(0, 31),
    },
  ],
  ['nftables.masqueradeAll', 'boolean', false, 'masquerade all traffic to cluster IPs'],
  [
    'nftables.syncPeriod',
    'duration',
    30 * second,
    'longest wait before a failed apply is tried again; /healthz fails when a change waits twice as long',
    {
      meaning: better('the kernel is read back every hour, and at once when another program changes the table'),
      check: positive,
    },
  ],
  [
    'nftables.minSyncPeriod',
    'duration',
    0,
    'least time between two applies',
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
    'how pods are told from others: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix',
    {
      meaning: better('NodeCIDR follows a Node that gets other ranges; kube-proxy ends'),
      check: oneOf('ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix'),
    },
  ],
  ['detectLocal.bridgeInterface', 'text', '', 'bridge by which pods are reached; needed by BridgeInterface'],
  ['detectLocal.interfaceNamePrefix', 'text', '', "how names of pods' interfaces begin; needed by InterfaceNamePrefix"],
  [
    'clusterCIDR',
    'text',
    '',
    'where pods are, one range per IP family; a family without one cannot tell pods from others; for ClusterCIDR',
    { change: 'live', hasAddresses: true },
  ],
  [
    'nodePortAddresses',
    'list',
    [],
    "where NodePorts answer: CIDRs and the keywords 'primary' (the Node's primary addresses), 'localhost' and 'all', in any combination (KEP-6032); unset: 'all' in the iptables mode, 'primary' in the others; without 'primary', a family without a listed CIDR answers on all its addresses",
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
    'how late the kernel kills this process when memory is short',
    { isZeroKept: true, check: between(-1000, 1000) },
  ],
  [
    'conntrack.maxPerCore',
    'integer',
    32_768,
    'connections tracked per CPU core; 0 leaves the limit alone, and min with it',
    { isZeroKept: true, check: notNegative },
  ],
  ['conntrack.min', 'integer', 131_072, 'connections tracked at least', { isZeroKept: true, check: notNegative }],
  [
    'conntrack.tcpEstablishedTimeout',
    'duration',
    24 * hour,
    'idle time of an established TCP connection; 0 leaves it alone',
    { isZeroKept: true, check: notNegative },
  ],
  [
    'conntrack.tcpCloseWaitTimeout',
    'duration',
    hour,
    'idle time of a TCP connection in CLOSE_WAIT; 0 leaves it alone',
    { isZeroKept: true, check: notNegative },
  ],
  [
    'conntrack.udpTimeout',
    'duration',
    0,
    'idle time of a UDP flow without an answer; 0 leaves it alone',
    { check: notNegative },
  ],
  [
    'conntrack.udpStreamTimeout',
    'duration',
    0,
    'idle time of a UDP flow with answers; 0 leaves it alone',
    { check: notNegative },
  ],
  ['conntrack.tcpBeLiberal', 'boolean', false, 'TCP packets outside the window are tracked as valid'],
]);

/** kube-proxy's configuration file, complete. */
export const kubeProxySchema: Schema = {
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  fields: [...processFields, ...mode, ...nftables, ...traffic, ...iptablesFields, ...kernel, ...otherModeFields],
};
