import { InvariantError } from '@switchyard/core';
import { better, fieldAt, ignored, type Meaning } from '../schema/field.ts';
import { kubeProxySchema } from '../schema/kube-proxy-fields.ts';
import { fieldOf, type Flag, type FlagGroup, type FlagTarget } from './flag.ts';

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

/** Defines a flag that sets a field; by default it has the field's type and help. */
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
    'configuration file (KubeProxyConfiguration); most other flags are then ignored and listed in the log',
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
    help: 'name of the Node (default: the host name in lower case)',
  }),
  command('master', 'text', 'URL of the API server; overrides the kubeconfig', { value: 'URL' }),
  command(
    'init-only',
    'boolean',
    'apply the settings that need full privileges, and exit; afterwards CAP_NET_ADMIN suffices',
  ),
  command('cleanup', 'boolean', 'remove all kernel state of this agent, and exit', {
    meaning: different("removes the agent's objects; kube-proxy's with --switchyard-cleanup-kube-proxy"),
  }),
  command('version', 'text', 'print the version, and exit; --version=raw prints details as JSON', {
    meaning: different('prints the name and version of the agent, not those of Kubernetes'),
    bare: 'true',
  }),
  command('help', 'boolean', 'print this help, and exit'),
]);

/** Flags of klog and component-base. They take precedence over the file. */
const logging = flagsOf('Logging', true, [
  setting('v', 'logging.verbosity', { value: 'LEVEL' }),
  setting('vmodule', 'logging.vmodule', { value: 'PATTERN=N,...', help: 'verbosity per source file' }),
  setting('logging-format', 'logging.format', {
    value: 'text|json',
    help: 'klog lines, or one JSON object per line',
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
  setting('kube-api-burst', 'clientConnection.burst', { help: 'maximum burst above --kube-api-qps' }),
  setting('config-sync-period', 'configSyncPeriod'),
  setting('feature-gates', 'featureGates', { value: 'NAME=BOOL,...', help: 'feature gates' }),
]);

const servers = flagsOf('Servers', false, [
  setting('bind-address', 'bindAddress', {
    value: 'IP',
    help: "overrides the Node's primary address; no server binds to it",
  }),
  setting('healthz-bind-address', 'healthzBindAddress', {
    value: 'IP[:PORT]',
    help: "address of /healthz and /livez; '' for none",
  }),
  setting('metrics-bind-address', 'metricsBindAddress', {
    value: 'IP[:PORT]',
    help: "address of /metrics; '' for none",
  }),
  setting('bind-address-hard-fail', 'bindAddressHardFail', { help: 'end the process if a server cannot listen' }),
  setting('profiling', 'enableProfiling'),
  setting('show-hidden-metrics-for-version', 'showHiddenMetricsForVersion', {
    value: 'VERSION',
    help: 'show metrics that are hidden since this version',
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
    help: 'maximum interval between retries, in all modes',
  }),
  setting('iptables-min-sync-period', ofMode('minSyncPeriod'), {
    help: 'minimum interval between two applies, in all modes; the default is for iptables only',
    meaning: better("in the other modes unset is the dataplane's own minimum, some milliseconds"),
  }),
  setting('iptables-masquerade-bit', 'iptables.masqueradeBit', { value: 'BIT', help: 'bit of the packet mark' }),
  setting('iptables-localhost-nodeports', 'iptables.localhostNodePorts', { help: 'NodePorts answer on 127.0.0.1' }),
  setting('ipvs-sync-period', 'ipvs.syncPeriod'),
  setting('ipvs-min-sync-period', 'ipvs.minSyncPeriod'),
  setting('ipvs-scheduler', 'ipvs.scheduler', { value: 'NAME', help: 'scheduler of ipvs' }),
  setting('ipvs-exclude-cidrs', 'ipvs.excludeCIDRs', { value: 'CIDR,...' }),
  setting('ipvs-strict-arp', 'ipvs.strictARP'),
  setting('ipvs-tcp-timeout', 'ipvs.tcpTimeout'),
  setting('ipvs-tcpfin-timeout', 'ipvs.tcpFinTimeout'),
  setting('ipvs-udp-timeout', 'ipvs.udpTimeout'),
]);

const traffic = flagsOf('Traffic', false, [
  setting('detect-local-mode', 'detectLocalMode', { value: 'MODE' }),
  setting('cluster-cidr', 'clusterCIDR', {
    value: 'CIDR[,CIDR]',
    help: 'CIDRs of the pods of the cluster, one per IP family',
  }),
  setting('pod-bridge-interface', 'detectLocal.bridgeInterface', {
    value: 'NAME',
    help: 'name of the bridge of the pods',
  }),
  setting('pod-interface-name-prefix', 'detectLocal.interfaceNamePrefix', {
    value: 'PREFIX',
    help: "prefix of the names of the pods' interfaces",
  }),
  setting('nodeport-addresses', 'nodePortAddresses', {
    value: 'CIDR,...',
    help: "addresses on which NodePorts answer: CIDRs and the keywords 'primary', 'localhost' and 'all'",
  }),
]);

const kernel = flagsOf('Kernel', false, [
  setting('oom-score-adj', 'oomScoreAdj', { help: 'oom_score_adj of the process, -1000 to 1000' }),
  setting('conntrack-max-per-core', 'conntrack.maxPerCore', {
    help: 'maximum number of tracked connections per CPU core; 0 keeps the limit',
  }),
  setting('conntrack-min', 'conntrack.min'),
  setting('conntrack-tcp-timeout-established', 'conntrack.tcpEstablishedTimeout', {
    help: 'idle timeout of established TCP connections',
  }),
  setting('conntrack-tcp-timeout-close-wait', 'conntrack.tcpCloseWaitTimeout', {
    help: 'idle timeout of TCP connections in CLOSE_WAIT',
  }),
  setting('conntrack-tcp-be-liberal', 'conntrack.tcpBeLiberal', {
    help: 'treat TCP packets outside the window as valid',
  }),
  setting('conntrack-udp-timeout', 'conntrack.udpTimeout', { help: 'idle timeout of UDP flows without a reply' }),
  setting('conntrack-udp-timeout-stream', 'conntrack.udpStreamTimeout', {
    help: 'idle timeout of UDP flows with replies',
  }),
]);

const inherited = flagsOf('Inherited', false, [
  { ...command('boot-id-file', 'text', 'files with the boot id', { value: 'FILE,...' }), target: nothing },
  { ...command('machine-id-file', 'text', 'files with the machine id', { value: 'FILE,...' }), target: nothing },
]);

const ours = flagsOf('Switchyard', true, [
  command(
    'switchyard-config',
    'text',
    'configuration file of Switchyard (SwitchyardConfiguration); flags take precedence',
    {
      value: 'FILE',
    },
  ),
  setting('switchyard-manifests', 'manifests', {
    value: 'DIR',
    help: 'watch YAML and JSON files in a directory instead of an API server',
  }),
  setting('switchyard-nft-transport', 'nftTransport', {
    value: 'netlink|cli',
    help: 'for manifests of earlier releases: the agent always uses netlink',
  }),
  setting('switchyard-iptables-variant', 'iptablesVariant', {
    value: 'auto|nft|legacy',
    help: 'iptables variant that the iptables mode programs; auto: the one in use',
  }),
  setting('switchyard-ebpf-cgroup', 'ebpf.cgroup', {
    value: 'DIR',
    help: 'ebpf mode: cgroup; the sockets of its processes are served (default: the root)',
  }),
  setting('switchyard-ebpf-bpffs', 'ebpf.bpffs', {
    value: 'DIR',
    help: 'ebpf mode: mount point of bpffs; mounted if missing',
  }),
  setting('switchyard-ebpf-interfaces', 'ebpf.interfaces', {
    value: 'PATTERN,...',
    help: 'ebpf mode: devices that receive traffic from outside, such as eth0,bond*; default: all',
  }),
  setting('switchyard-ebpf-north-south', 'ebpf.northSouth', {
    value: 'auto|tc|nftables',
    help: 'ebpf mode: dataplane of traffic from outside: programs (tc) or rules (nftables)',
  }),
  setting('switchyard-ebpf-socket-lb', 'ebpf.socketLB', {
    value: 'all|host',
    help: 'ebpf mode: sockets that are served: all, or only those of the host network',
  }),
  setting('switchyard-terminating-fallback', 'terminatingFallback', {
    value: 'on|off',
    help: 'off: never use terminating endpoints, as Kubernetes up to 1.25',
  }),
  setting('switchyard-kube-proxy-rules', 'kubeProxyRules', {
    value: 'remove|keep',
    help: 'rules that a stopped kube-proxy left in the kernel',
  }),
  setting('switchyard-drain-gate', 'drainGate'),
  setting('switchyard-service-metrics', 'serviceMetrics.enabled'),
  setting('switchyard-service-metrics-limit', 'serviceMetrics.limit'),
  command('switchyard-observe', 'boolean', 'program nothing: explain losses beside the proxy of this node'),
  command('switchyard-dump', 'boolean', 'print the kernel state of this agent, and exit'),
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
