/** Stages of a gate as Kubernetes names them. `DEPRECATED`: the gate turns off a feature that will be removed. */
export type GateStageName = 'ALPHA' | 'BETA' | 'GA' | 'DEPRECATED';

/** The state of a gate from one release on. */
export interface GateStage {
  /** The minor version in which the stage begins: 36 for Kubernetes 1.36. */
  readonly since: number;
  readonly stage: GateStageName;
  readonly default: boolean;
  /** The gate cannot be set to anything but its default. */
  readonly isLocked: boolean;
}

type GateStages = readonly [GateStage, ...GateStage[]];

/** One feature gate that is about a proxy, or about every component. */
export interface FeatureGate {
  readonly name: string;
  /** In the order of their releases. */
  readonly stages: GateStages;
  /** The minor version that no longer has the gate. Its feature keeps the default of the last stage. */
  readonly goneIn?: number;
  /** The agent's default in every release, where it is not the one of the stage. */
  readonly defaultHere?: boolean;
  /** Kubernetes has no such gate. `AllAlpha` leaves it alone, and its stage began with no release of Kubernetes. */
  readonly isOurs?: true;
  /** The effect here, or the reason for none. */
  readonly meaning:
    | { readonly kind: 'effect'; readonly text: string }
    | { readonly kind: 'none'; readonly why: string };
}

const alpha = (since: number): GateStage => ({ since, stage: 'ALPHA', default: false, isLocked: false });
const beta = (since: number): GateStage => ({ since, stage: 'BETA', default: true, isLocked: false });
const betaOff = (since: number): GateStage => ({ ...beta(since), default: false });
const ga = (since: number): GateStage => ({ since, stage: 'GA', default: true, isLocked: false });
const locked = (since: number): GateStage => ({ ...ga(since), isLocked: true });
const deprecated = (since: number): GateStage => ({ since, stage: 'DEPRECATED', default: true, isLocked: false });

const gate = (name: string, stages: GateStages, text: string): FeatureGate => ({
  name,
  stages,
  meaning: { kind: 'effect', text },
});
const idle = (name: string, stages: GateStages, why: string): FeatureGate => ({
  name,
  stages,
  meaning: { kind: 'none', why },
});
const gone = (name: string, stages: GateStages, goneIn: number): FeatureGate => ({
  name,
  stages,
  goneIn,
  meaning: { kind: 'none', why: 'the feature is permanent' },
});
const ours = (name: string, text: string): FeatureGate => ({ ...gate(name, [alpha(0)], text), isOurs: true });

/**
 * Every gate of kube-proxy 1.26 to 1.38, and ours, by name. Stages that begin after 1.38 are left out.
 *
 * Stages and defaults: the pages of kubernetes.io for single gates, and its tables for 1.37. Locks, and the releases that
 * removed a gate: versioned specs of pkg/features/kube_features.go in Kubernetes 1.29 to 1.35, and the list that Gardener
 * extracts from that file of each release, up to 1.36. 1.37: kubernetes/kubernetes#137536 (NFTablesNetlink), KEP-5495
 * (KubeProxyIPVS: off in 1.40, removed in 1.43), KEP-6032 (KubeProxyNFTablesLocalhostNodePorts, on in 1.38).
 * The sources differ about IPv6DualStack: it was removed in 1.25 or in 1.27; the later counts here.
 */
export const gateTable: readonly FeatureGate[] = [
  gate('AllAlpha', [alpha(17)], 'sets every gate in alpha that is not set by itself'),
  gate('AllBeta', [betaOff(17)], 'sets every gate in beta that is not set by itself'),
  gate('AllowServiceExternalIPs', [deprecated(36)], 'off: external IPs of Services get no rules'),
  gate('ComponentFlagz', [alpha(32), beta(36)], '`/flagz` on the metrics server'),
  gone('ComponentSLIs', [alpha(26), beta(27), locked(32)], 35),
  gate('ComponentStatusz', [alpha(32), beta(36)], '`/statusz` on the metrics server'),
  idle('ContextualLogging', [alpha(24), beta(30)], 'every log line has its context as fields'),
  gone('EndpointSliceTerminatingCondition', [alpha(20), beta(22), locked(26)], 28),
  gone('IPTablesOwnershipCleanup', [alpha(25), beta(27), locked(28)], 30),
  gone('IPv6DualStack', [alpha(15), beta(21), locked(23)], 27),
  gone('KubeProxyDrainingTerminatingNodes', [alpha(28), beta(30), locked(31)], 33),
  idle('KubeProxyIPVS', [deprecated(37)], 'the ipvs mode is not here (KEP-5495: deprecated, removed in 1.43)'),
  {
    ...gate(
      'KubeProxyNFTablesLocalhostNodePorts',
      [alpha(37), beta(38)],
      'off: no proxy for NodePorts on listed loopback addresses (nftables and ebpf modes). On in every release here',
    ),
    defaultHere: true,
  },
  gone('LoadBalancerIPMode', [alpha(29), beta(30), locked(32)], 35),
  idle('LoggingAlphaOptions', [alpha(24)], 'the options it allows have no effect'),
  idle('LoggingBetaOptions', [beta(24)], 'both log formats are always available'),
  gone('MinimizeIPTablesRestore', [alpha(26), beta(27), locked(28)], 30),
  gone('MixedProtocolLBService', [alpha(20), beta(24), locked(26)], 28),
  gate('MultiCIDRServiceAllocator', [alpha(27), betaOff(31), ga(33), locked(34)], 'ServiceCIDR objects are watched'),
  idle('NFTablesNetlink', [beta(37)], 'the nftables mode always uses netlink'),
  gate('NFTablesProxyMode', [alpha(29), beta(31), locked(33)], 'the nftables mode exists'),
  idle('NativeHistograms', [alpha(36), beta(37)], 'histograms have the buckets of kube-proxy only'),
  gate('PreferSameTrafficDistribution', [alpha(33), beta(34), locked(35)], 'node hints of endpoints are obeyed'),
  gone('ProxyTerminatingEndpoints', [alpha(22), beta(26), locked(28)], 30),
  gone('ServiceInternalTrafficPolicy', [alpha(21), beta(22), locked(26)], 28),
  gone('ServiceTrafficDistribution', [alpha(30), beta(31), locked(33)], 36),
  ours(
    'SwitchyardLoadBalancerIPModeRouter',
    'load-balancer IPs with `ipMode: Router` lead to endpoints on this node only; without one the route decides',
  ),
  gone('TopologyAwareHints', [alpha(21), betaOff(23), beta(24), locked(33)], 36),
  idle('WinDSR', [alpha(14), beta(33), locked(34)], 'only Windows reads it'),
  idle('WinOverlay', [alpha(14), beta(20), locked(34)], 'only Windows reads it'),
];
