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
  /** The primary addresses of the Node, from the API server. */
  readonly primary: boolean;
  /** Addresses in these ranges. Without `primary`, a family without a range answers on all its addresses, as in kube-proxy. */
  readonly cidrs: readonly Cidr[];
  /** Families whose loopback addresses are listed by themselves, not as a part of all addresses. */
  readonly loopback: readonly IpFamily[];
}

/** Settings of the iptables mode only. `localhostNodePorts`: enabled, and `nodePortAddresses` includes loopback; IPv4 only. */
export type IptablesConfig = Pick<BackendHost, 'variant' | 'masqueradeBit' | 'localhostNodePorts'>;

/** Settings of the ebpf mode only. */
export type EbpfConfig = Pick<BackendHost, 'cgroup' | 'bpffs' | 'interfaces' | 'northSouth' | 'socketLb'>;

/** The dataplane and its options. */
export interface DataplaneConfig {
  readonly mode: ProxyMode;
  readonly iptables: IptablesConfig;
  readonly ebpf: EbpfConfig;
  readonly tcpBeLiberal: boolean;
  /** Maximum interval between retries, and between full reads of legacy iptables; health checks fail after twice this time. */
  readonly syncPeriod: Millis;
}

/** How traffic of this node's pods is recognized (`detectLocalMode`). */
export type DetectLocal =
  /** The first range of each family counts; without one, pods of that family are not recognized. */
  | { readonly kind: 'clusterCIDR'; readonly cidrs: Readonly<Partial<Record<IpFamily, Cidr>>> }
  | { readonly kind: 'nodeCIDR' }
  | { readonly kind: 'bridgeInterface'; readonly name: string }
  | { readonly kind: 'interfaceNamePrefix'; readonly prefix: string };

/** Address of a server of the agent. */
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

/** Metrics per Service, and their maximum number. */
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

/** Validated configuration: kube-proxy's settings and Switchyard's. */
export interface RunConfig extends LogConfig, DataplaneConfig, ClusterPlace {
  readonly kind: 'run';
  /**
   * `set-up`: do what needs privileges, then end (`--init-only`). `observe`: program nothing, and explain the losses of the proxy that
   * runs on this node (`--switchyard-observe`).
   */
  readonly purpose: 'run' | 'set-up' | 'observe';
  /** Overrides the Node's primary address, and with it the primary family; undefined for the Node's own. */
  readonly bindAddress: IpAddress | undefined;
  readonly detectLocal: DetectLocal;
  readonly masqueradeAll: boolean;
  readonly nodePortAddresses: NodePortAddresses;
  /** Undefined: no server. */
  readonly healthz: BindTarget | undefined;
  readonly metricsServer: BindTarget | undefined;
  /** A server that cannot listen ends the process instead of retrying. */
  readonly bindAddressHardFail: boolean;
  readonly enableProfiling: boolean;
  /** Undefined: the dataplane's own. */
  readonly minSyncPeriod: Millis | undefined;
  readonly conntrack: ConntrackConfig;
  /** -1000 to 1000; undefined leaves the process as it is. */
  readonly oomScoreAdj: number | undefined;
  /** Every known gate with its state. */
  readonly featureGates: ReadonlyMap<string, boolean>;

  // Settings of Switchyard, from --switchyard-* and SwitchyardConfiguration.
  readonly terminatingFallback: TableOptions['terminatingFallback'];
  /** Removes the rules of a stopped kube-proxy once those of the agent are in place, or keeps them. */
  readonly kubeProxyRules: 'remove' | 'keep';
  readonly serviceMetrics: ServiceMetricsConfig;
  /** Whether the health port answers a drain gate. */
  readonly drainGate: boolean;

  /** Every setting by its path; `/configz` shows them. */
  readonly settings: EffectiveSettings;
  readonly flags: FlagValues;
  /** Notes that the process logs when it starts. */
  readonly notes: readonly ConfigNote[];
  /** The configuration files as they were read: text by path. */
  readonly files: ReadonlyMap<string, string>;
}

interface CommandConfig extends LogConfig, DataplaneConfig {
  readonly notes: readonly ConfigNote[];
}

/** Configuration of this process. */
export type Config =
  | RunConfig
  /** `ofEveryMode`: no mode is set, so the state of all modes. */
  | ({ readonly kind: 'dump'; readonly ofEveryMode: boolean } & CommandConfig)
  /** `ofKubeProxyToo`: kube-proxy's own objects as well. */
  | ({ readonly kind: 'cleanup'; readonly ofKubeProxyToo: boolean } & CommandConfig)
  | ({ readonly kind: 'write'; readonly file: string; readonly settings: Settings } & CommandConfig)
  | { readonly kind: 'help' }
  | { readonly kind: 'version'; readonly form: 'line' | 'raw' };
