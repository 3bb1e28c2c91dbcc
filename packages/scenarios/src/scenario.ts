import type { IpAddress, IpFamily, Port, Protocol, SourceClass, TrafficPolicy } from '@switchyard/core';

/** What the agent on the node under test was started with. */
export interface ScenarioAgent {
  /** `false`: no `--cluster-cidr`, so pods cannot be told from the outside. */
  readonly detectsPods: boolean;
  readonly masqueradeAll: boolean;
  readonly terminatingFallback: 'on' | 'off';
  /** CIDRs for `--nodeport-addresses`; empty means every local address. */
  readonly nodePortAddresses: readonly string[];
}

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
  readonly ports: readonly ScenarioPort[];
  readonly externalTrafficPolicy: TrafficPolicy;
  readonly internalTrafficPolicy: TrafficPolicy;
  readonly externalIPs: readonly IpAddress[];
  readonly loadBalancerIPs: readonly { readonly ip: IpAddress; readonly ipMode: string | undefined }[];
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

/** What must happen to a flow. */
export type Expectation =
  | { readonly kind: 'forward'; readonly to: readonly IpAddress[]; readonly masquerade: boolean }
  | { readonly kind: 'reject' }
  | { readonly kind: 'drop' }
  /** Not ours: the packet goes where it would go without a proxy. */
  | { readonly kind: 'pass' };

/** The first packet of a connection and what must become of it. */
export interface ScenarioFlow {
  readonly from: SourceClass;
  /** Only for `pod`: the sending pod is this endpoint (hairpin). Undefined: a pod that is nobody's endpoint. */
  readonly fromEndpoint: IpAddress | undefined;
  readonly to: IpAddress;
  readonly port: Port;
  readonly protocol: Protocol;
  readonly expect: Expectation;
}

/** What the healthCheckNodePort of a Service must answer. */
export interface ScenarioHealthCheck {
  readonly service: string;
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
  /** The agent is killed and started again; nothing may change. */
  | { readonly kind: 'restartAgent'; readonly line: number };

/** One scenario in one IP family: a state, then steps that change it or look at it. */
export interface Scenario {
  /** File name without suffix: the stable id. */
  readonly id: string;
  readonly name: string;
  /** The KEP or API sentence it checks. */
  readonly why: string;
  readonly ipFamily: IpFamily;
  readonly agent: ScenarioAgent;
  /** Zone of the node under test. */
  readonly zone: string;
  readonly services: readonly ScenarioService[];
  readonly endpoints: readonly ScenarioEndpoint[];
  readonly steps: readonly ScenarioStep[];
}
