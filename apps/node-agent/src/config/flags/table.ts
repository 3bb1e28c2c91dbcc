import { InvariantError } from '@switchyard/core';
import { better, fieldAt, ignored, type Meaning } from '../schema/field.ts';
import { kubeProxySchema } from '../schema/kube-proxy-fields.ts';
import { fieldOf, type Flag, type FlagGroup, type FlagTarget } from './flag.ts';

/** A flag but for what its group says. */
type Row = Omit<Flag, 'group' | 'isKeptWithFile'>;
type Rest = Pick<Flag, 'value' | 'bare' | 'deprecated' | 'meaning'>;

const different = (how: string): Meaning => ({ kind: 'different', how });
const nothing: FlagTarget = { kind: 'nothing', meaning: ignored('kube-proxy does nothing with it either') };
const ofMode = (name: string): FlagTarget => ({ kind: 'fieldOfMode', name });

const flagsOf = (group: FlagGroup, isKeptWithFile: boolean, rows: readonly Row[]): readonly Flag[] =>
  rows.map((row) => ({ ...row, group, isKeptWithFile }));

const command = (name: string, type: Flag['type'], help: string, rest?: Rest): Row => {
  const target: FlagTarget = { kind: 'command' };
  return { name, type, target, help, ...(type === 'boolean' ? { bare: 'true' } : {}), ...rest };
};

const usualValues: Readonly<Partial<Record<Flag['type'], string>>> = {
  duration: 'DURATION',
  nanoseconds: 'DURATION',
  integer: 'N',
  number: 'N',
};

/** A flag of a field, by default with the field's type and help. */
const setting = (name: string, to: string | FlagTarget, rest?: Rest & Partial<Pick<Flag, 'help'>>): Row => {
  const target = typeof to === 'string' ? targetOf(to) : to;
  const field = fieldOf({ target });
  if (field === undefined) throw new InvariantError(`--${name} sets no field`);
  const { type, help } = field;
  const value = usualValues[type];
  return { ...command(name, type, help, value === undefined ? {} : { value }), target, ...rest };
};

const targetOf = (path: string): FlagTarget => ({
  kind: fieldAt(kubeProxySchema, path) === undefined ? 'own' : 'field',
  path,
});

const commands = flagsOf('Configuration files and what to do', true, [
  command(
    'config',
    'text',
    'configuration file (KubeProxyConfiguration); most other flags are then ignored, and named in the log',
    {
      value: 'FILE',
      meaning: better(
        'a change of the file applies at once where that is safe, also through a ConfigMap; kube-proxy ends, and misses ConfigMaps',
      ),
    },
  ),
  command('write-config-to', 'text', 'write the configuration, with defaults, to a file, and exit', {
    value: 'FILE',
    meaning: better('the old file stays until the new one is complete'),
  }),
  setting('hostname-override', 'hostnameOverride', {
    value: 'NAME',
    help: 'name of our Node (default: the host name in lower case)',
  }),
  command('master', 'text', "the API server's URL, in place of the kubeconfig's", { value: 'URL' }),
  command('init-only', 'boolean', 'do what needs full privileges, and exit; CAP_NET_ADMIN is then enough to run'),
  command('cleanup', 'boolean', 'remove everything this agent left in the kernel, and exit', {
    meaning: different("removes the agent's objects; kube-proxy's with --switchyard-cleanup-kube-proxy"),
  }),
  command('version', 'text', 'print the version, and exit; --version=raw for all that is known, as JSON', {
    meaning: different('prints the name and version of the agent, not those of Kubernetes'),
    bare: 'true',
  }),
  command('help', 'boolean', 'print this, and exit'),
]);

/** Flags of klog and component-base. They win over the file. */
const logging = flagsOf('Logging', true, [
  setting('v', 'logging.verbosity', { value: 'LEVEL' }),
  setting('vmodule', 'logging.vmodule', { value: 'PATTERN=N,...', help: 'level of single source files' }),
  setting('logging-format', 'logging.format', {
    value: 'text|json',
    help: 'lines as klog writes them, or one JSON object per line',
  }),
  setting('log-flush-frequency', 'logging.flushFrequency'),
  ...['text', 'json'].flatMap((format) => [
    setting(`log-${format}-split-stream`, `logging.options.${format}.splitStream`),
    setting(`log-${format}-info-buffer-size`, `logging.options.${format}.infoBufferSize`, { value: 'BYTES' }),
  ]),
]);

const api = flagsOf('API server', false, [
  setting('kubeconfig', 'clientConnection.kubeconfig', {
    value: 'FILE',
    help: "kubeconfig file (default, without --master: the pod's service account)",
  }),
  setting('kube-api-content-type', 'clientConnection.contentType', { value: 'TYPE' }),
  setting('kube-api-qps', 'clientConnection.qps', { help: 'requests per second' }),
  setting('kube-api-burst', 'clientConnection.burst', { help: 'requests that may exceed it for a moment' }),
  setting('config-sync-period', 'configSyncPeriod'),
  setting('feature-gates', 'featureGates', { value: 'NAME=BOOL,...', help: 'feature gates' }),
]);

const servers = flagsOf('Servers', false, [
  setting('bind-address', 'bindAddress', {
    value: 'IP',
    help: "overrides the Node's primary address; nothing is bound to it",
  }),
  setting('healthz-bind-address', 'healthzBindAddress', {
    value: 'IP[:PORT]',
    help: "where /healthz and /livez answer; '' for nowhere",
  }),
  setting('metrics-bind-address', 'metricsBindAddress', {
    value: 'IP[:PORT]',
    help: "where /metrics answers; '' for nowhere",
  }),
  setting('bind-address-hard-fail', 'bindAddressHardFail', { help: 'end when a server cannot listen' }),
  setting('profiling', 'enableProfiling'),
  setting('show-hidden-metrics-for-version', 'showHiddenMetricsForVersion', {
    value: 'VERSION',
    help: 'show metrics hidden since a version',
  }),
  command('healthz-port', 'integer', 'port of a --healthz-bind-address without one; 0 for no server', {
    value: 'PORT',
    deprecated: '--healthz-bind-address',
  }),
  command('metrics-port', 'integer', 'port of a --metrics-bind-address without one; 0 for no server', {
    value: 'PORT',
    deprecated: '--metrics-bind-address',
    meaning: better('0 turns the server off; kube-proxy then refuses the empty address'),
  }),
]);

const mode = flagsOf('Mode', false, [
  setting('proxy-mode', 'mode', { value: 'MODE' }),
  setting('masquerade-all', ofMode('masqueradeAll')),
  setting('iptables-sync-period', ofMode('syncPeriod'), {
    help: 'longest wait before a retry, in the other modes too',
  }),
  setting('iptables-min-sync-period', ofMode('minSyncPeriod'), {
    help: 'least time between two applies; in the other modes too, but without a default',
    meaning: better("in the other modes unset is the dataplane's own minimum, some milliseconds"),
  }),
  setting('iptables-masquerade-bit', 'iptables.masqueradeBit', { value: 'BIT', help: 'bit of the packet mark' }),
  setting('iptables-localhost-nodeports', 'iptables.localhostNodePorts', { help: 'NodePorts answer on 127.0.0.1' }),
  setting('ipvs-sync-period', 'ipvs.syncPeriod'),
  setting('ipvs-min-sync-period', 'ipvs.minSyncPeriod'),
  setting('ipvs-scheduler', 'ipvs.scheduler', { value: 'NAME', help: 'how an endpoint is chosen' }),
  setting('ipvs-exclude-cidrs', 'ipvs.excludeCIDRs', { value: 'CIDR,...' }),
  setting('ipvs-strict-arp', 'ipvs.strictARP'),
  setting('ipvs-tcp-timeout', 'ipvs.tcpTimeout'),
  setting('ipvs-tcpfin-timeout', 'ipvs.tcpFinTimeout'),
  setting('ipvs-udp-timeout', 'ipvs.udpTimeout'),
]);

const traffic = flagsOf('Traffic', false, [
  setting('detect-local-mode', 'detectLocalMode', { value: 'MODE' }),
  setting('cluster-cidr', 'clusterCIDR', { value: 'CIDR[,CIDR]', help: 'where pods are, one range per IP family' }),
  setting('pod-bridge-interface', 'detectLocal.bridgeInterface', {
    value: 'NAME',
    help: 'bridge by which pods are reached',
  }),
  setting('pod-interface-name-prefix', 'detectLocal.interfaceNamePrefix', {
    value: 'PREFIX',
    help: "how names of pods' interfaces begin",
  }),
  setting('nodeport-addresses', 'nodePortAddresses', {
    value: 'CIDR,...',
    help: "where NodePorts answer: CIDRs and the keywords 'primary', 'localhost' and 'all'",
  }),
]);

const kernel = flagsOf('Kernel', false, [
  setting('oom-score-adj', 'oomScoreAdj', { help: 'how late the kernel kills this process, -1000 to 1000' }),
  setting('conntrack-max-per-core', 'conntrack.maxPerCore', {
    help: 'connections tracked per CPU core; 0 leaves the limit alone',
  }),
  setting('conntrack-min', 'conntrack.min'),
  setting('conntrack-tcp-timeout-established', 'conntrack.tcpEstablishedTimeout', {
    help: 'idle time of an established TCP connection',
  }),
  setting('conntrack-tcp-timeout-close-wait', 'conntrack.tcpCloseWaitTimeout', {
    help: 'idle time of a TCP connection in CLOSE_WAIT',
  }),
  setting('conntrack-tcp-be-liberal', 'conntrack.tcpBeLiberal', { help: 'TCP packets outside the window are valid' }),
  setting('conntrack-udp-timeout', 'conntrack.udpTimeout', { help: 'idle time of a UDP flow without an answer' }),
  setting('conntrack-udp-timeout-stream', 'conntrack.udpStreamTimeout', {
    help: 'idle time of a UDP flow with answers',
  }),
]);

/** Flags that kube-proxy has because libraries bring them. */
const inherited = flagsOf('Inherited', false, [
  { ...command('boot-id-file', 'text', 'where the boot id may be read', { value: 'FILE,...' }), target: nothing },
  { ...command('machine-id-file', 'text', 'where the machine id may be read', { value: 'FILE,...' }), target: nothing },
]);

const ours = flagsOf('Switchyard', true, [
  command('switchyard-config', 'text', 'our own configuration file (SwitchyardConfiguration); flags win over it', {
    value: 'FILE',
  }),
  setting('switchyard-manifests', 'manifests', {
    value: 'DIR',
    help: 'follow YAML and JSON files in a folder instead of an API server',
  }),
  setting('switchyard-nft-transport', 'nftTransport', {
    value: 'netlink|cli',
    help: 'accepted for manifests of earlier releases, without effect: everything goes over netlink',
  }),
  setting('switchyard-iptables-variant', 'iptablesVariant', {
    value: 'auto|nft|legacy',
    help: "which of the kernel's two iptables gets the rules, in the iptables mode; auto: the one in use",
  }),
  setting('switchyard-ebpf-cgroup', 'ebpf.cgroup', {
    value: 'DIR',
    help: "cgroup whose processes' sockets the ebpf mode serves (default: the root)",
  }),
  setting('switchyard-ebpf-bpffs', 'ebpf.bpffs', {
    value: 'DIR',
    help: 'where bpffs is, or is to be mounted, in the ebpf mode',
  }),
  setting('switchyard-ebpf-interfaces', 'ebpf.interfaces', {
    value: 'PATTERN,...',
    help: 'devices on which clients from outside arrive, such as eth0,bond*; default: every device',
  }),
  setting('switchyard-ebpf-north-south', 'ebpf.northSouth', {
    value: 'auto|tc|nftables',
    help: 'who forwards what comes from outside, in the ebpf mode: programs (tc) or rules',
  }),
  setting('switchyard-ebpf-socket-lb', 'ebpf.socketLB', {
    value: 'all|host',
    help: 'whose sockets the ebpf mode serves: all, or only those of the host network',
  }),
  setting('switchyard-terminating-fallback', 'terminatingFallback', {
    value: 'on|off',
    help: 'off: never send to terminating endpoints, as Kubernetes up to 1.25',
  }),
  setting('switchyard-kube-proxy-rules', 'kubeProxyRules', {
    value: 'remove|keep',
    help: 'what a stopped kube-proxy left in the kernel',
  }),
  setting('switchyard-service-metrics', 'serviceMetrics.enabled'),
  setting('switchyard-service-metrics-limit', 'serviceMetrics.limit'),
  command('switchyard-dump', 'boolean', 'print what is in the kernel, and exit'),
  command('switchyard-cleanup-kube-proxy', 'boolean', "with --cleanup: remove kube-proxy's own objects too"),
]);

/** Every flag, in the order of the help. Names and meanings are kube-proxy's, but for the last group. */
export const flags: readonly Flag[] = [
  ...commands,
  ...logging,
  ...api,
  ...servers,
  ...mode,
  ...traffic,
  ...kernel,
  ...inherited,
  ...ours,
];
