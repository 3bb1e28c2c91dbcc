import { checkFeatureGates } from '../feature-gates.ts';
import { previousMinor } from '../kubernetes-version.ts';
import {
  bindAddress,
  fileRules,
  ipAddress,
  nodePortRanges,
  notNegative,
  oneOf,
  podRanges,
  positive,
  between,
} from './checks.ts';
import type { Field, FieldValue, Meaning, Schema } from './field.ts';
import { otherModeFields } from './other-mode-fields.ts';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

const all = 'all';
const same: Meaning = { kind: 'same' };
const ignored = (why: string): Meaning => ({ kind: 'ignored', why });
const better = (how: string): Meaning => ({ kind: 'better', how });
const noGates: ReadonlyMap<string, boolean> = new Map();

const jsonOnly = 'requests are JSON: this agent asks for little, and reads it as it comes';
const oneRequest = 'there is one list and one watch per resource, and no other request to hold back';
const oneStream = 'every line goes to standard error';
const unbuffered = 'lines are written at once, so none is lost when the process ends';

const hiddenMetrics = (value: FieldValue): string | undefined =>
  value === '' || value === previousMinor
    ? undefined
    : `must be ${previousMinor}: only metrics hidden since the previous minor version can be shown`;

const connection: readonly Field[] = [
  {
    path: 'clientConnection.kubeconfig',
    type: 'text',
    default: '',
    modes: all,
    meaning: better('rotated tokens and certificates it names are read again without a restart'),
    change: 'restart',
    help: "kubeconfig file; empty, and no --master: the pod's service account",
  },
  {
    path: 'clientConnection.acceptContentTypes',
    type: 'text',
    default: '',
    modes: all,
    meaning: ignored(jsonOnly),
    change: 'none',
    help: 'Accept header of requests',
  },
  {
    path: 'clientConnection.contentType',
    type: 'text',
    default: 'application/vnd.kubernetes.protobuf',
    modes: all,
    meaning: ignored(jsonOnly),
    change: 'none',
    help: 'content type of requests',
  },
  {
    path: 'clientConnection.qps',
    type: 'number',
    default: 5,
    modes: all,
    meaning: ignored(oneRequest),
    change: 'none',
    help: 'requests per second to the API server',
  },
  {
    path: 'clientConnection.burst',
    type: 'integer',
    default: 10,
    modes: all,
    meaning: ignored(oneRequest),
    change: 'none',
    help: 'requests that may exceed qps for a moment',
    check: notNegative,
  },
];

const logging: readonly Field[] = [
  {
    path: 'logging.format',
    type: 'text',
    default: 'text',
    modes: all,
    meaning: same,
    change: 'restart',
    help: 'text (lines as klog writes them) or json (one object per line)',
    check: oneOf('text', 'json'),
  },
  {
    path: 'logging.flushFrequency',
    type: 'nanoseconds',
    default: 5 * second,
    modes: all,
    meaning: ignored(unbuffered),
    change: 'none',
    help: 'time between flushes of the log',
  },
  {
    path: 'logging.verbosity',
    type: 'integer',
    default: 0,
    modes: all,
    meaning: better('can be changed without a restart'),
    change: 'live',
    help: 'level of detail: from 4 on each Service, from 6 on each transaction',
    check: between(0, 2 ** 31 - 1),
  },
  {
    path: 'logging.vmodule',
    type: 'vmodule',
    default: [],
    modes: all,
    meaning: ignored('patterns name Go source files, of which there are none'),
    change: 'none',
    help: 'verbosity of single source files',
    check: fileRules,
  },
  ...(['text', 'json'] as const).flatMap((format): readonly Field[] => [
    {
      path: `logging.options.${format}.splitStream`,
      type: 'boolean',
      default: false,
      modes: all,
      meaning: ignored(oneStream),
      change: 'none',
      help: 'errors to standard error, all else to standard output',
    },
    {
      path: `logging.options.${format}.infoBufferSize`,
      type: 'quantity',
      default: '0',
      modes: all,
      meaning: ignored(unbuffered),
      change: 'none',
      help: 'buffer of a split stream',
    },
  ]),
];

const serving: readonly Field[] = [
  {
    path: 'hostnameOverride',
    type: 'text',
    default: '',
    modes: all,
    meaning: same,
    change: 'restart',
    help: 'name of our Node; empty: the host name in lower case. --hostname-override wins over it',
  },
  {
    path: 'bindAddress',
    type: 'text',
    default: '0.0.0.0',
    modes: all,
    meaning: same,
    change: 'restart',
    help: "overrides the Node's primary address and with it the primary IP family; nothing is bound to it",
    check: ipAddress,
  },
  {
    path: 'healthzBindAddress',
    type: 'text',
    default: '0.0.0.0:10256',
    modes: all,
    meaning: same,
    change: 'restart',
    help: '`/healthz` and `/livez`; a bare IP address gets port 10256; [::]:10256 if bindAddress is IPv6',
    check: bindAddress,
  },
  {
    path: 'metricsBindAddress',
    type: 'text',
    default: '127.0.0.1:10249',
    modes: all,
    meaning: better('an empty flag turns the server off, as the help of kube-proxy says; kube-proxy refuses it'),
    change: 'restart',
    help: '`/metrics`, `/configz`, ...; a bare IP address gets port 10249; [::1]:10249 if bindAddress is IPv6',
    check: bindAddress,
  },
  {
    path: 'bindAddressHardFail',
    type: 'boolean',
    default: false,
    modes: all,
    meaning: same,
    change: 'restart',
    help: 'a server that cannot listen ends the process; otherwise it tries again every 5 s',
  },
  {
    path: 'enableProfiling',
    type: 'boolean',
    default: false,
    modes: all,
    meaning: same,
    change: 'restart',
    help: 'profiling endpoints on the metrics server',
  },
  {
    path: 'showHiddenMetricsForVersion',
    type: 'text',
    default: '',
    modes: all,
    meaning: ignored('no metric is hidden'),
    change: 'none',
    help: `show metrics hidden since a version; only ${previousMinor} is taken`,
    check: hiddenMetrics,
  },
  {
    path: 'featureGates',
    type: 'gates',
    default: noGates,
    modes: all,
    meaning: same,
    change: 'restart',
    help: 'feature gates by name; an unknown one, or a locked one against its lock, is an error',
    check: (value) => checkFeatureGates(value as ReadonlyMap<string, boolean>),
  },
  {
    path: 'configSyncPeriod',
    type: 'duration',
    default: 15 * minute,
    modes: all,
    meaning: ignored('kube-proxy then handles its own cache again; nothing of ours waits for that'),
    change: 'none',
    help: 'how often the cached objects are handled again',
    check: positive,
  },
];

const dataplane: readonly Field[] = [
  {
    path: 'mode',
    type: 'text',
    default: '',
    modes: all,
    meaning: {
      kind: 'refused',
      why: 'only nftables exists here: iptables (also meant by an empty mode), ipvs and kernelspace are refused',
    },
    change: 'restart',
    help: 'how the kernel is programmed: must be nftables',
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
    modes: 'nftables',
    meaning: better('can be changed without a restart'),
    change: 'live',
    help: 'masquerade all traffic to cluster IPs',
  },
  {
    path: 'nftables.syncPeriod',
    type: 'duration',
    default: 30 * second,
    modes: 'nftables',
    meaning: better(
      'can be changed without a restart; the kernel is read back every hour, and at once when somebody changed our table',
    ),
    change: 'live',
    help: 'longest wait before a failed apply is tried again; /healthz fails when a change waits twice as long',
    check: positive,
  },
  {
    path: 'nftables.minSyncPeriod',
    type: 'duration',
    default: 0,
    modes: 'nftables',
    meaning: better(
      "unset is the dataplane's own minimum (some milliseconds: an apply costs as much as its change), not 1s; can be changed without a restart",
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
    meaning: better('can be changed without a restart'),
    change: 'live',
    help: 'where pods are, one range per IP family; a family without one cannot tell pods from others',
    check: podRanges,
  },
  {
    path: 'nodePortAddresses',
    type: 'list',
    default: [],
    modes: all,
    meaning: better('can be changed without a restart; the primary addresses follow the Node'),
    change: 'live',
    help: "where NodePorts answer: CIDRs, or 'primary' alone, which is what nothing means; a family without a listed CIDR answers on all its addresses",
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
  fields: [...serving, ...connection, ...logging, ...dataplane, ...kernel, ...otherModeFields],
};
