import type {
  DataplaneTraits,
  IpAddress,
  IpFamily,
  Port,
  Protocol,
  SourceClass,
  TrafficPolicy,
} from '@switchyard/core';

/** How the agent recognizes pods of its node: `detectLocalMode` and its settings. */
export type ScenarioDetection =
  /** No `--cluster-cidr`, so pods are not recognized. */
  | { readonly kind: 'none' }
  | { readonly kind: 'clusterCIDR' | 'nodeCIDR' }
  | { readonly kind: 'bridgeInterface'; readonly name: string }
  | { readonly kind: 'interfaceNamePrefix'; readonly prefix: string };

/** Options of the agent on the node under test. */
export interface ScenarioAgent {
  readonly detectLocal: ScenarioDetection;
  readonly masqueradeAll: boolean;
  readonly terminatingFallback: 'on' | 'off';
  /**
   * CIDRs for `--nodeport-addresses`; empty means every local address. `primary`: our Node's first address. `default`: the flag
   * is not given, and the dataplane has a default of its own.
   */
  readonly nodePortAddresses: 'primary' | 'default' | readonly string[];
  /** `--iptables-localhost-nodeports`: NodePorts answer on 127.0.0.0/8. Only dataplanes whose `loopbackNodePorts` are the kernel's can. */
  readonly localhostNodePorts: boolean;
  /** Feature gate `SwitchyardLoadBalancerIPModeRouter`. */
  readonly routerIpMode: boolean;
}

/** Default agent settings of scenarios. */
export const plainAgent: ScenarioAgent = {
  detectLocal: { kind: 'clusterCIDR' },
  masqueradeAll: false,
  terminatingFallback: 'on',
  nodePortAddresses: [],
  localhostNodePorts: true,
  routerIpMode: false,
};

/** One port of a scenario's Service. */
export interface ScenarioPort {
  readonly name: string;
  readonly port: Port;
  readonly protocol: Protocol;
  readonly nodePort: Port | undefined;
}

/** A Service as a scenario writes it. Names and values are the API's. */
export interface ScenarioService {
  /** `namespace/name`. */
  readonly name: string;
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  /** An address, or `None` for a headless Service. */
  readonly clusterIP: IpAddress | 'None';
  /** Its twin in the other family, in a dual-stack scenario. The other address lists then hold both families. */
  readonly otherClusterIP: IpAddress | undefined;
  readonly ports: readonly ScenarioPort[];
  readonly externalTrafficPolicy: TrafficPolicy;
  readonly internalTrafficPolicy: TrafficPolicy;
  readonly externalIPs: readonly IpAddress[];
  readonly loadBalancerIPs: readonly { readonly ip: IpAddress; readonly ipMode: string | undefined }[];
  /** Of the scenario's own family only, also in a dual-stack scenario. */
  readonly loadBalancerSourceRanges: readonly string[];
  readonly healthCheckNodePort: Port | undefined;
  readonly sessionAffinityTimeoutSeconds: number | undefined;
  readonly labels: Readonly<Record<string, string>>;
}

/** One endpoint of a Service. Its pod listens on every port of the Service's slices. */
export interface ScenarioEndpoint {
  readonly service: string;
  readonly ip: IpAddress;
  /** Name of its Node; `node1` is the node under test. */
  readonly node: string;
  /** Target port; all ports of the Service lead there, plus their index. */
  readonly port: Port;
  readonly ready: boolean | undefined;
  readonly serving: boolean | undefined;
  readonly terminating: boolean | undefined;
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
  /** Endpoints with another slice name go into a slice of their own. */
  readonly slice: string;
}

/** An endpoint that must answer. */
export interface ExpectedEndpoint {
  readonly address: IpAddress;
  /** Undefined: any port of the pod will do. */
  readonly port: Port | undefined;
}

/** Required outcome of a flow. */
export type Expectation =
  /** Exactly these must answer. */
  | {
      readonly kind: 'forward';
      readonly to: readonly ExpectedEndpoint[];
      readonly masquerade: boolean;
      /** Whether the endpoint that is the sender is masqueraded. */
      readonly isHairpinMasqueraded: boolean;
    }
  | { readonly kind: 'reject' }
  | { readonly kind: 'drop' }
  /** Not forwarded: the packet is routed as without a proxy. */
  | { readonly kind: 'pass' };

/** The first packet of a connection and its required outcome. */
export interface ScenarioFlow {
  readonly from: SourceClass;
  /** Only for `pod`: the sending pod is this endpoint (hairpin). Undefined: a pod that is not an endpoint. */
  readonly fromEndpoint: IpAddress | undefined;
  /** Only for `node`: sent from the address it goes to, which is then also one of the node's own. */
  readonly isFromItself: boolean;
  /** Port of the sender. Undefined: a new port for each attempt. */
  readonly sourcePort: Port | undefined;
  readonly to: IpAddress;
  readonly port: Port;
  readonly protocol: Protocol;
  readonly expect: Expectation;
  /**
   * Session affinity: of the endpoints that may answer, the one at which this client was before, and the only one that
   * answers it. Looked at in the lab, and over fake kernels that can remember clients.
   */
  readonly kept: IpAddress | undefined;
}

/** Required answer of the healthCheckNodePort of a Service. */
export interface ScenarioHealthCheck {
  readonly service: string;
  /** Each family has a server and a count of its own. */
  readonly ipFamily: IpFamily;
  readonly status: 200 | 503 | 'closed';
  readonly localEndpoints: number | undefined;
}

/** One step after the first state. */
export type ScenarioStep =
  | { readonly kind: 'flow'; readonly flow: ScenarioFlow; readonly line: number }
  | { readonly kind: 'healthCheck'; readonly check: ScenarioHealthCheck; readonly line: number }
  | { readonly kind: 'putService'; readonly service: ScenarioService; readonly line: number }
  | { readonly kind: 'removeService'; readonly service: string; readonly line: number }
  | { readonly kind: 'putEndpoint'; readonly endpoint: ScenarioEndpoint; readonly line: number }
  | { readonly kind: 'removeEndpoint'; readonly service: string; readonly ip: IpAddress; readonly line: number }
  /** node1's Node object names another of its addresses as its own; the machine's addresses stay. */
  | { readonly kind: 'nodeAddress'; readonly address: IpAddress; readonly line: number }
  /** A ServiceCIDR object beside the cluster's first one; `cidr` is of the scenario's own family. */
  | { readonly kind: 'putServiceCidr'; readonly name: string; readonly cidr: string; readonly line: number }
  | { readonly kind: 'removeServiceCidr'; readonly name: string; readonly line: number }
  /** The agent is killed and started again; nothing may change. */
  | { readonly kind: 'restartAgent'; readonly line: number };

/**
 * How a scenario is run: on the forwarding table, on the rendering of a backend (kernel objects in a fake kernel, with a packet
 * tracer), with real packets.
 */
export type RunKind = 'table' | 'rendering' | 'packets';

/** All kinds, from the nearest to the policy to the nearest to the packet. */
export const runKinds: readonly RunKind[] = ['table', 'rendering', 'packets'];

/** Kinds of runs that a scenario allows, with its dataplane. */
export interface ScenarioRuns {
  /** Empty: none, because the dataplane does not support what it checks. */
  readonly kinds: readonly RunKind[];
  /** Why the other kinds are not possible; printed and counted as a skip there. Undefined: all kinds are. */
  readonly because: string | undefined;
}

/** One scenario in one IP family, as one dataplane must do it: a state, then steps that change it or look at it. */
export interface Scenario {
  /** File name without suffix: the stable id. */
  readonly id: string;
  readonly name: string;
  /** The KEP or API sentence it checks. */
  readonly why: string;
  /** Its own family: of all addresses, but for what a dual-stack scenario says of the other family. */
  readonly ipFamily: IpFamily;
  /** Nodes and Services have both families; endpoints and flows have one each. */
  readonly isDualStack: boolean;
  /** Dataplane whose results are expected, where dataplanes differ. */
  readonly dataplane: DataplaneTraits;
  readonly runs: ScenarioRuns;
  readonly agent: ScenarioAgent;
  /** Zone of the node under test. */
  readonly zone: string;
  readonly services: readonly ScenarioService[];
  readonly endpoints: readonly ScenarioEndpoint[];
  /** Kubernetes objects as they are, beside those made of services and endpoints, in every state. */
  readonly objects: readonly Readonly<Record<string, unknown>>[];
  readonly steps: readonly ScenarioStep[];
}
