import type { Cidr, IpAddress, IpFamily, Millis, NodeName, Port, TableOptions } from '@switchyard/core';
import type { LogFormat, LogLevel } from '@switchyard/host';
import type { BackendHost } from '../backends.ts';
import type { EffectiveSettings } from './effective.ts';
import type { FlagValues } from './flags/parse-flags.ts';
import type { ConfigNote } from './notes.ts';
import type { ProxyMode } from './proxy-mode.ts';
import type { Settings } from './settings.ts';

/** Where cluster state comes from. */
export type SourceConfig =
  /** `server` (`--master`) is taken in place of the file's, if given. */
  | { readonly kind: 'kubeconfig'; readonly file: string; readonly server: URL | undefined }
  /** Without credentials: `--master` and no kubeconfig. */
  | { readonly kind: 'server'; readonly server: URL }
  | { readonly kind: 'inCluster'; readonly env: Readonly<Record<string, string | undefined>> }
  | { readonly kind: 'manifests'; readonly folder: string };

/** Where NodePorts answer (KEP-6032). */
export interface NodePortAddresses {
  /** The primary addresses of our Node, as far as the API server says them. */
  readonly primary: boolean;
  /** Addresses in these ranges. Without `primary`, a family without a range answers on all its addresses, as in kube-proxy. */
  readonly cidrs: readonly Cidr[];
  /** Families whose loopback addresses are listed by themselves, not as a part of all addresses. */
  readonly loopback: readonly IpFamily[];
}

/** What the iptables mode reads besides what every mode does. `localhostNodePorts`: set, and `nodePortAddresses` lets them; IPv4 only. */
export type IptablesConfig = Pick<BackendHost, 'variant' | 'masqueradeBit' | 'localhostNodePorts'>;

/** What the ebpf mode reads besides what every mode does. */
export type EbpfConfig = Pick<BackendHost, 'cgroup' | 'bpffs' | 'interfaces' | 'northSouth' | 'socketLb'>;

/** Which dataplane, and what it is told when it is opened. */
export interface DataplaneConfig {
  readonly mode: ProxyMode;
  readonly iptables: IptablesConfig;
  readonly ebpf: EbpfConfig;
  /** `conntrack.tcpBeLiberal`. */
  readonly tcpBeLiberal: boolean;
  /** Longest time between two looks at everything. */
  readonly syncPeriod: Millis;
}

/** How pods of this node are told from others (`detectLocalMode`). */
export type DetectLocal =
  /** The first range of each family counts; a family without one cannot tell pods. */
  | { readonly kind: 'clusterCIDR'; readonly cidrs: Readonly<Partial<Record<IpFamily, Cidr>>> }
  /** The ranges of our Node's `spec.podCIDRs`. */
  | { readonly kind: 'nodeCIDR' }
  | { readonly kind: 'bridgeInterface'; readonly name: string }
  | { readonly kind: 'interfaceNamePrefix'; readonly prefix: string };

/** Where a server of ours listens. */
export interface BindTarget {
  readonly address: IpAddress;
  readonly port: Port;
}

/** Connection tracking settings of the kernel. 0, and undefined where allowed, leave the kernel's value. */
export interface ConntrackConfig {
  readonly maxPerCore: number;
  readonly min: number;
  readonly tcpEstablishedTimeout: Millis;
  readonly tcpCloseWaitTimeout: Millis;
  readonly tcpBeLiberal: boolean;
  readonly udpTimeout: Millis;
  readonly udpStreamTimeout: Millis;
}

/** Whether metrics name single Services, and how many of them at most. */
export type ServiceMetricsConfig = { readonly kind: 'off' } | { readonly kind: 'on'; readonly limit: number };

/** How to log. */
export interface LogConfig {
  readonly logFormat: LogFormat;
  readonly logLevel: LogLevel;
}

/** Which cluster this agent belongs to, and as which Node. */
export interface ClusterPlace {
  readonly source: SourceConfig;
  readonly nodeName: NodeName;
}

/** What the operator asked for, validated: kube-proxy's settings and ours. */
export interface RunConfig extends LogConfig, DataplaneConfig, ClusterPlace {
  readonly kind: 'run';
  /** `set-up`: do what needs privileges, then end (`--init-only`). */
  readonly purpose: 'run' | 'set-up';
  /** Overrides the Node's primary address, and with it the primary family; undefined for the Node's own. */
  readonly bindAddress: IpAddress | undefined;
  readonly detectLocal: DetectLocal;
  readonly masqueradeAll: boolean;
  readonly nodePortAddresses: NodePortAddresses;
  /** Undefined: no server. */
  readonly healthz: BindTarget | undefined;
  /** Undefined: no server. */
  readonly metricsServer: BindTarget | undefined;
  /** A server that cannot listen ends the process, instead of trying again. */
  readonly bindAddressHardFail: boolean;
  readonly enableProfiling: boolean;
  /** Undefined: the dataplane's own. */
  readonly minSyncPeriod: Millis | undefined;
  readonly conntrack: ConntrackConfig;
  /** -1000 to 1000; undefined leaves the process as it is. */
  readonly oomScoreAdj: number | undefined;
  /** Every gate we know, with its state. */
  readonly featureGates: ReadonlyMap<string, boolean>;

  // Ours, from --switchyard-* and SwitchyardConfiguration.
  readonly terminatingFallback: TableOptions['terminatingFallback'];
  /** What a stopped kube-proxy left in the kernel goes once ours is in place, or stays. */
  readonly kubeProxyRules: 'remove' | 'keep';
  readonly serviceMetrics: ServiceMetricsConfig;

  /** Every setting by its path; `/configz` shows them. */
  readonly settings: EffectiveSettings;
  /** The flags that were given; `/flagz` shows them. */
  readonly flags: FlagValues;
  /** To be logged when the process begins. */
  readonly notes: readonly ConfigNote[];
  /** The configuration files as they were read: text by path. */
  readonly files: ReadonlyMap<string, string>;
}

/** What commands other than running need. */
interface CommandConfig extends LogConfig, DataplaneConfig {
  readonly notes: readonly ConfigNote[];
}

/** What this process is to do. */
export type Config =
  | RunConfig
  /** `ofEveryMode`: none was said, so whatever is there. */
  | ({ readonly kind: 'dump'; readonly ofEveryMode: boolean } & CommandConfig)
  /** `ofKubeProxyToo`: kube-proxy's own objects as well. */
  | ({ readonly kind: 'cleanup'; readonly ofKubeProxyToo: boolean } & CommandConfig)
  /** Write kube-proxy's part of the configuration to a file. */
  | ({ readonly kind: 'write'; readonly file: string; readonly settings: Settings } & CommandConfig)
  | { readonly kind: 'help' }
  | { readonly kind: 'version'; readonly form: 'line' | 'raw' };
