import { between, nodePortRanges, notNegative, oneOf, positive } from './checks.ts';
import type { Field, Meaning, Schema } from './field.ts';
import { iptablesFields } from './iptables-fields.ts';
import { otherModeFields } from './other-mode-fields.ts';
import { processFields } from './process-fields.ts';

const second = 1000;
const hour = 3600 * second;

const all = 'all';
const same: Meaning = { kind: 'same' };
const ignored = (why: string): Meaning => ({ kind: 'ignored', why });
const better = (how: string): Meaning => ({ kind: 'better', how });

const dataplane: readonly Field[] = [
  {
    path: 'mode',
    type: 'text',
    default: '',
    modes: all,
    meaning: {
      kind: 'refused',
      why: 'takes iptables (default when empty), nftables, and ebpf, which kube-proxy lacks; refuses ipvs and kernelspace',
    },
    change: 'restart',
    help: 'how the kernel is programmed: iptables (default when empty), nftables, or ebpf',
  },
  {
    path: 'nftables.masqueradeBit',
    type: 'integer',
    default: 14,
    isZeroKept: true,
    modes: 'nftables',
    meaning: ignored('our rules need no bit of the packet mark'),
    change: 'none',
    help: 'bit of the packet mark that asks for masquerading',
    check: between(0, 31),
  },
  {
    path: 'nftables.masqueradeAll',
    type: 'boolean',
    default: false,
    modes: 'nftables, ebpf',
    meaning: same,
    change: 'live',
    help: 'masquerade all traffic to cluster IPs',
  },
  {
    path: 'nftables.syncPeriod',
    type: 'duration',
    default: 30 * second,
    modes: 'nftables, ebpf',
    meaning: better('the kernel is read back every hour, and at once when another program changes the table'),
    change: 'live',
    help: 'longest wait before a failed apply is tried again; /healthz fails when a change waits twice as long',
    check: positive,
  },
  {
    path: 'nftables.minSyncPeriod',
    type: 'duration',
    default: 0,
    modes: 'nftables, ebpf',
    meaning: better(
      "unset is the dataplane's own minimum (some milliseconds: an apply costs as much as its change), not 1s",
    ),
    change: 'live',
    help: 'least time between two applies',
    check: notNegative,
  },
  {
    path: 'detectLocalMode',
    type: 'text',
    default: 'ClusterCIDR',
    modes: 'Linux',
    meaning: better('NodeCIDR follows a Node that gets other ranges; kube-proxy ends'),
    change: 'restart',
    help: 'how pods are told from others: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix',
    check: oneOf('ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix'),
  },
  {
    path: 'detectLocal.bridgeInterface',
    type: 'text',
    default: '',
    modes: 'Linux',
    meaning: same,
    change: 'restart',
    help: 'bridge by which pods are reached; needed by BridgeInterface',
  },
  {
    path: 'detectLocal.interfaceNamePrefix',
    type: 'text',
    default: '',
    modes: 'Linux',
    meaning: same,
    change: 'restart',
    help: "how names of pods' interfaces begin; needed by InterfaceNamePrefix",
  },
  {
    path: 'clusterCIDR',
    type: 'text',
    default: '',
    modes: 'Linux',
    meaning: same,
    change: 'live',
    help: 'where pods are, one range per IP family; a family without one cannot tell pods from others; for ClusterCIDR',
    hasAddresses: true,
  },
  {
    path: 'nodePortAddresses',
    type: 'list',
    default: [],
    modes: all,
    meaning: better('the primary addresses follow the Node'),
    change: 'live',
    help: "where NodePorts answer: CIDRs and the keywords 'primary' (the Node's primary addresses), 'localhost' and 'all', in any combination (KEP-6032); unset: 'all' in the iptables mode, 'primary' in the others; without 'primary', a family without a listed CIDR answers on all its addresses",
    hasAddresses: true,
    check: nodePortRanges,
  },
];

const kernel: readonly Field[] = [
  {
    path: 'oomScoreAdj',
    type: 'integer',
    default: -999,
    isZeroKept: true,
    modes: 'Linux',
    meaning: same,
    change: 'restart',
    help: 'how late the kernel kills this process when memory is short',
    check: between(-1000, 1000),
  },
  ...(
    [
      ['maxPerCore', 32_768, 'connections tracked per CPU core; 0 leaves the limit alone, and min with it'],
      ['min', 131_072, 'connections tracked at least'],
    ] as const
  ).map(([name, value, help]): Field => ({
    path: `conntrack.${name}`,
    type: 'integer',
    default: value,
    isZeroKept: true,
    modes: 'Linux',
    meaning: same,
    change: 'restart',
    help,
    check: notNegative,
  })),
  ...(
    [
      ['tcpEstablishedTimeout', 24 * hour, 'idle time of an established TCP connection; 0 leaves it alone'],
      ['tcpCloseWaitTimeout', hour, 'idle time of a TCP connection in CLOSE_WAIT; 0 leaves it alone'],
      ['udpTimeout', 0, 'idle time of a UDP flow without an answer; 0 leaves it alone'],
      ['udpStreamTimeout', 0, 'idle time of a UDP flow with answers; 0 leaves it alone'],
    ] as const
  ).map(([name, value, help]): Field => ({
    path: `conntrack.${name}`,
    type: 'duration',
    default: value,
    ...(value === 0 ? {} : { isZeroKept: true }),
    modes: 'Linux',
    meaning: same,
    change: 'restart',
    help,
    check: notNegative,
  })),
  {
    path: 'conntrack.tcpBeLiberal',
    type: 'boolean',
    default: false,
    modes: 'Linux',
    meaning: same,
    change: 'restart',
    help: 'TCP packets outside the window are tracked as valid',
  },
];

/** kube-proxy's configuration file, complete. */
export const kubeProxySchema: Schema = {
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  fields: [...processFields, ...dataplane, ...iptablesFields, ...kernel, ...otherModeFields],
};
