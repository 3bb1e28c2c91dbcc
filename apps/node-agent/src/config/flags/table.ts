import type { Meaning } from '../schema/field.ts';
import { inheritedFlags, loggingFlags } from './logging-flags.ts';
import type { Flag, FlagGroup, FlagTarget } from './flag.ts';

const better = (how: string): Meaning => ({ kind: 'better', how });
const different = (how: string): Meaning => ({ kind: 'different', how });
const command: FlagTarget = { kind: 'command' };
const field = (path: string): FlagTarget => ({ kind: 'field', path });
const ofMode = (name: string): FlagTarget => ({
  kind: 'fieldOfMode',
  nftables: `nftables.${name}`,
  other: `iptables.${name}`,
});

type Rest = Pick<Flag, 'value' | 'bare' | 'deprecated' | 'meaning'>;
type Row = readonly [name: string, type: Flag['type'], target: FlagTarget, help: string, rest?: Rest];

const flagsOf = (group: FlagGroup, isKeptWithFile: boolean, rows: readonly Row[]): readonly Flag[] =>
  rows.map(([name, type, target, help, rest]) => ({
    name,
    group,
    type,
    target,
    isKeptWithFile,
    help,
    ...(type === 'boolean' ? { bare: 'true' } : {}),
    ...rest,
  }));

const commands = flagsOf('Configuration files and what to do', true, [
  [
    'config',
    'text',
    command,
    'configuration file (KubeProxyConfiguration); most other flags are then ignored, and named in the log',
    {
      value: 'FILE',
      meaning: better(
        'a change of the file applies at once where that is safe, also through a ConfigMap; kube-proxy ends, and misses ConfigMaps',
      ),
    },
  ],
  [
    'write-config-to',
    'text',
    command,
    'write the configuration, with defaults, to a file, and exit',
    { value: 'FILE', meaning: better('the old file stays until the new one is complete') },
  ],
  [
    'hostname-override',
    'text',
    field('hostnameOverride'),
    'name of our Node (default: the host name in lower case)',
    { value: 'NAME' },
  ],
  ['master', 'text', command, "the API server's URL, in place of the kubeconfig's", { value: 'URL' }],
  ['init-only', 'boolean', command, 'do what needs full privileges, and exit; CAP_NET_ADMIN is then enough to run'],
  [
    'cleanup',
    'boolean',
    command,
    'remove everything this agent left in the kernel, and exit',
    { meaning: different("removes the agent's objects; kube-proxy's with --switchyard-cleanup-kube-proxy") },
  ],
  [
    'version',
    'text',
    command,
    'print the version, and exit; --version=raw for all that is known, as JSON',
    { bare: 'true', meaning: different('prints the name and version of the agent, not those of Kubernetes') },
  ],
  ['help', 'boolean', command, 'print this, and exit'],
]);

const api = flagsOf('API server', false, [
  [
    'kubeconfig',
    'text',
    field('clientConnection.kubeconfig'),
    "kubeconfig file (default, without --master: the pod's service account)",
    { value: 'FILE' },
  ],
  [
    'kube-api-content-type',
    'text',
    field('clientConnection.contentType'),
    'content type of requests',
    { value: 'TYPE' },
  ],
  ['kube-api-qps', 'number', field('clientConnection.qps'), 'requests per second', { value: 'N' }],
  [
    'kube-api-burst',
    'integer',
    field('clientConnection.burst'),
    'requests that may exceed it for a moment',
    { value: 'N' },
  ],
  [
    'config-sync-period',
    'duration',
    field('configSyncPeriod'),
    'how often the cached objects are handled again',
    { value: 'DURATION' },
  ],
  ['feature-gates', 'gates', field('featureGates'), 'feature gates', { value: 'NAME=BOOL,...' }],
]);

const servers = flagsOf('Servers', false, [
  [
    'bind-address',
    'text',
    field('bindAddress'),
    "overrides the Node's primary address; nothing is bound to it",
    { value: 'IP' },
  ],
  [
    'healthz-bind-address',
    'text',
    field('healthzBindAddress'),
    "where /healthz and /livez answer; '' for nowhere",
    { value: 'IP[:PORT]' },
  ],
  [
    'metrics-bind-address',
    'text',
    field('metricsBindAddress'),
    "where /metrics answers; '' for nowhere",
    { value: 'IP[:PORT]' },
  ],
  ['bind-address-hard-fail', 'boolean', field('bindAddressHardFail'), 'end when a server cannot listen'],
  ['profiling', 'boolean', field('enableProfiling'), 'profiling endpoints on the metrics server'],
  [
    'show-hidden-metrics-for-version',
    'text',
    field('showHiddenMetricsForVersion'),
    'show metrics hidden since a version',
    { value: 'VERSION' },
  ],
  [
    'healthz-port',
    'integer',
    command,
    'port of a --healthz-bind-address without one; 0 for no server',
    { value: 'PORT', deprecated: '--healthz-bind-address' },
  ],
  [
    'metrics-port',
    'integer',
    command,
    'port of a --metrics-bind-address without one; 0 for no server',
    {
      value: 'PORT',
      deprecated: '--metrics-bind-address',
      meaning: better('0 turns the server off; kube-proxy then refuses the empty address'),
    },
  ],
]);

const mode = flagsOf('Mode', false, [
  [
    'proxy-mode',
    'text',
    field('mode'),
    'how the kernel is programmed: iptables (default when empty), nftables, or ebpf',
    { value: 'MODE' },
  ],
  ['masquerade-all', 'boolean', ofMode('masqueradeAll'), 'masquerade all traffic to cluster IPs'],
  [
    'iptables-sync-period',
    'duration',
    ofMode('syncPeriod'),
    'longest wait before a retry, in the other modes too',
    { value: 'DURATION' },
  ],
  [
    'iptables-min-sync-period',
    'duration',
    ofMode('minSyncPeriod'),
    'least time between two applies; in the other modes too, but without a default',
    {
      value: 'DURATION',
      meaning: better("in the other modes unset is the dataplane's own minimum, some milliseconds"),
    },
  ],
  ['iptables-masquerade-bit', 'integer', field('iptables.masqueradeBit'), 'bit of the packet mark', { value: 'BIT' }],
  ['iptables-localhost-nodeports', 'boolean', field('iptables.localhostNodePorts'), 'NodePorts answer on 127.0.0.1'],
  ['ipvs-sync-period', 'duration', field('ipvs.syncPeriod'), 'longest time between two syncs', { value: 'DURATION' }],
  [
    'ipvs-min-sync-period',
    'duration',
    field('ipvs.minSyncPeriod'),
    'least time between two syncs',
    { value: 'DURATION' },
  ],
  ['ipvs-scheduler', 'text', field('ipvs.scheduler'), 'how an endpoint is chosen', { value: 'NAME' }],
  [
    'ipvs-exclude-cidrs',
    'list',
    field('ipvs.excludeCIDRs'),
    'virtual servers that are left alone',
    { value: 'CIDR,...' },
  ],
  ['ipvs-strict-arp', 'boolean', field('ipvs.strictARP'), 'no answers to ARP for addresses of kube-ipvs0'],
  ['ipvs-tcp-timeout', 'duration', field('ipvs.tcpTimeout'), 'idle time of a TCP connection', { value: 'DURATION' }],
  [
    'ipvs-tcpfin-timeout',
    'duration',
    field('ipvs.tcpFinTimeout'),
    'idle time of a TCP connection after a FIN',
    { value: 'DURATION' },
  ],
  ['ipvs-udp-timeout', 'duration', field('ipvs.udpTimeout'), 'idle time of a UDP flow', { value: 'DURATION' }],
]);

const traffic = flagsOf('Traffic', false, [
  [
    'detect-local-mode',
    'text',
    field('detectLocalMode'),
    'how pods are told from others: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix',
    { value: 'MODE' },
  ],
  ['cluster-cidr', 'text', field('clusterCIDR'), 'where pods are, one range per IP family', { value: 'CIDR[,CIDR]' }],
  [
    'pod-bridge-interface',
    'text',
    field('detectLocal.bridgeInterface'),
    'bridge by which pods are reached',
    { value: 'NAME' },
  ],
  [
    'pod-interface-name-prefix',
    'text',
    field('detectLocal.interfaceNamePrefix'),
    "how names of pods' interfaces begin",
    { value: 'PREFIX' },
  ],
  [
    'nodeport-addresses',
    'list',
    field('nodePortAddresses'),
    "where NodePorts answer: CIDRs and the keywords 'primary', 'localhost' and 'all'",
    { value: 'CIDR,...' },
  ],
]);

const kernel = flagsOf('Kernel', false, [
  [
    'oom-score-adj',
    'integer',
    field('oomScoreAdj'),
    'how late the kernel kills this process, -1000 to 1000',
    { value: 'N' },
  ],
  [
    'conntrack-max-per-core',
    'integer',
    field('conntrack.maxPerCore'),
    'connections tracked per CPU core; 0 leaves the limit alone',
    { value: 'N' },
  ],
  ['conntrack-min', 'integer', field('conntrack.min'), 'connections tracked at least', { value: 'N' }],
  [
    'conntrack-tcp-timeout-established',
    'duration',
    field('conntrack.tcpEstablishedTimeout'),
    'idle time of an established TCP connection',
    { value: 'DURATION' },
  ],
  [
    'conntrack-tcp-timeout-close-wait',
    'duration',
    field('conntrack.tcpCloseWaitTimeout'),
    'idle time of a TCP connection in CLOSE_WAIT',
    { value: 'DURATION' },
  ],
  ['conntrack-tcp-be-liberal', 'boolean', field('conntrack.tcpBeLiberal'), 'TCP packets outside the window are valid'],
  [
    'conntrack-udp-timeout',
    'duration',
    field('conntrack.udpTimeout'),
    'idle time of a UDP flow without an answer',
    { value: 'DURATION' },
  ],
  [
    'conntrack-udp-timeout-stream',
    'duration',
    field('conntrack.udpStreamTimeout'),
    'idle time of a UDP flow with answers',
    { value: 'DURATION' },
  ],
]);

const own = (path: string): FlagTarget => ({ kind: 'own', path });

const ours = flagsOf('Switchyard', true, [
  [
    'switchyard-config',
    'text',
    command,
    'our own configuration file (SwitchyardConfiguration); flags win over it',
    { value: 'FILE' },
  ],
  [
    'switchyard-manifests',
    'text',
    own('manifests'),
    'follow YAML and JSON files in a folder instead of an API server',
    { value: 'DIR' },
  ],
  [
    'switchyard-nft-transport',
    'text',
    own('nftTransport'),
    'accepted for manifests of earlier releases, without effect: everything goes over netlink',
    { value: 'netlink|cli' },
  ],
  [
    'switchyard-iptables-variant',
    'text',
    own('iptablesVariant'),
    "which of the kernel's two iptables gets the rules, in the iptables mode; auto: the one in use",
    { value: 'auto|nft|legacy' },
  ],
  [
    'switchyard-ebpf-cgroup',
    'text',
    own('ebpf.cgroup'),
    "cgroup whose processes' sockets the ebpf mode serves (default: the root)",
    { value: 'DIR' },
  ],
  [
    'switchyard-ebpf-bpffs',
    'text',
    own('ebpf.bpffs'),
    'where bpffs is, or is to be mounted, in the ebpf mode',
    { value: 'DIR' },
  ],
  [
    'switchyard-ebpf-interfaces',
    'list',
    own('ebpf.interfaces'),
    'devices on which clients from outside arrive, such as eth0,bond*; default: every device',
    { value: 'PATTERN,...' },
  ],
  [
    'switchyard-ebpf-north-south',
    'text',
    own('ebpf.northSouth'),
    'who forwards what comes from outside, in the ebpf mode: programs (tc) or rules',
    { value: 'auto|tc|nftables' },
  ],
  [
    'switchyard-ebpf-socket-lb',
    'text',
    own('ebpf.socketLB'),
    'whose sockets the ebpf mode serves: all, or only those of the host network',
    { value: 'all|host' },
  ],
  [
    'switchyard-terminating-fallback',
    'text',
    own('terminatingFallback'),
    'off: never send to terminating endpoints, as Kubernetes up to 1.25',
    { value: 'on|off' },
  ],
  [
    'switchyard-kube-proxy-rules',
    'text',
    own('kubeProxyRules'),
    'what a stopped kube-proxy left in the kernel',
    { value: 'remove|keep' },
  ],
  ['switchyard-service-metrics', 'boolean', own('serviceMetrics.enabled'), 'metrics of single Services'],
  [
    'switchyard-service-metrics-limit',
    'integer',
    own('serviceMetrics.limit'),
    'how many Service ports of a family have metrics of their own at most',
    { value: 'N' },
  ],
  ['switchyard-dump', 'boolean', command, 'print what is in the kernel, and exit'],
  ['switchyard-cleanup-kube-proxy', 'boolean', command, "with --cleanup: remove kube-proxy's own objects too"],
]);

/** Every flag, in the order of the help. Names and meanings are kube-proxy's, but for the last group. */
export const flags: readonly Flag[] = [
  ...commands,
  ...loggingFlags,
  ...api,
  ...servers,
  ...mode,
  ...traffic,
  ...kernel,
  ...inheritedFlags,
  ...ours,
];
