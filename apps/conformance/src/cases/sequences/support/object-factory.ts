import {
  InvariantError,
  type IpAddress,
  type IpFamily,
  type Port,
  parseIp,
  parsePort,
  type Protocol,
  type SourceClass,
} from '@switchyard/core';
import {
  type DataplaneName,
  dataplaneNamed,
  type Expectation,
  ipv6TwinOf,
  otherFamilyOf,
  type Scenario,
  type ScenarioAgent,
  type ScenarioEndpoint,
  type ScenarioFlow,
  type ScenarioService,
} from '@switchyard/scenarios';
import { type PodName, sequencePods } from '../../sequence-pods.ts';

/** Conditions of an endpoint, in the order in which a pod has them. */
export type Condition = 'ready' | 'serving-terminating' | 'terminating';

/** Frontend that a flow uses. `secondNodePort`: the NodePort at an address that the Node object does not name. */
export type Frontend = 'clusterIP' | 'nodePort' | 'secondNodePort' | 'loadBalancerIP';

/** A Service of a sequence. Absent fields have the API's defaults. */
export interface ServiceOptions {
  /** Default 1. Each has a name, a cluster IP, a load-balancer IP and NodePorts of its own. Up to 200. */
  readonly number?: number;
  readonly type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer';
  readonly protocol?: Protocol;
  readonly externalTrafficPolicy?: 'Cluster' | 'Local';
  readonly internalTrafficPolicy?: 'Cluster' | 'Local';
  /** IPv4 CIDRs of the plan. */
  readonly loadBalancerSourceRanges?: readonly string[];
  readonly hasHealthCheck?: boolean;
  readonly sessionAffinityTimeoutSeconds?: number;
}

/** A flow in short: Service, frontend and source. */
export interface Call {
  readonly service: ScenarioService;
  readonly by: Frontend;
  readonly from: SourceClass;
  /** The client keeps its port. */
  readonly sourcePort?: number;
  /** Uses the second family of a dual-stack cluster. */
  readonly inOtherFamily?: boolean;
}

/** A pod's packets to the cluster IP. */
export function podToClusterIp(service: ScenarioService): Call {
  return { service, by: 'clusterIP', from: 'pod' };
}

/** Packets from outside the cluster to the NodePort. */
export function outsideToNodePort(service: ScenarioService): Call {
  return { service, by: 'nodePort', from: 'outside' };
}

/** A call in a check's id: `pod by clusterIP`. */
export function callName({ from, by, inOtherFamily }: Call): string {
  return `${from} by ${by}${inOtherFamily === true ? ', other family' : ''}`;
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

/** An address of the plan of scenarios, in this family. */
export function addressIn(ipFamily: IpFamily, ipv4: string): IpAddress {
  const twin = ipv6TwinOf(ipv4);
  if (twin === undefined) throw new InvariantError(`${ipv4} is not an address of the plan of scenarios`);
  return ipFamily === 'IPv4' ? parseIp(ipv4) : twin;
}

/** `near` pods are on node1, the node under test. */
function nodeOf(pod: PodName): string {
  return pod.startsWith('near') ? 'node1' : 'node2';
}

/** Makes the objects and expectations of a sequence, with the addresses of one family. */
export class ObjectFactory {
  readonly ipFamily: IpFamily;
  readonly dataplane: DataplaneName;
  readonly #isDualStack: boolean;

  constructor(ipFamily: IpFamily, dataplane: DataplaneName, isDualStack = false) {
    this.ipFamily = ipFamily;
    this.dataplane = dataplane;
    this.#isDualStack = isDualStack;
  }

  /** A factory with the other family of a dual-stack cluster. */
  get other(): ObjectFactory {
    return new ObjectFactory(otherFamilyOf(this.ipFamily), this.dataplane, this.#isDualStack);
  }

  address(ipv4: string): IpAddress {
    return addressIn(this.ipFamily, ipv4);
  }

  pod(name: PodName): IpAddress {
    return this.address(sequencePods[name]);
  }

  service(options: ServiceOptions = {}): ScenarioService {
    const { number = 1, type = 'ClusterIP', protocol = 'TCP' } = options;
    const clusterIP = `10.96.0.${9 + number}`;
    const isExternal = type !== 'ClusterIP';
    return {
      name: `shop/cart-${number}`,
      type,
      clusterIP: this.address(clusterIP),
      otherClusterIP: this.#isDualStack ? this.other.address(clusterIP) : undefined,
      ports: [
        { name: 'main', port: parsePort(80), protocol, nodePort: isExternal ? parsePort(30_079 + number) : undefined },
      ],
      externalTrafficPolicy: options.externalTrafficPolicy ?? 'Cluster',
      internalTrafficPolicy: options.internalTrafficPolicy ?? 'Cluster',
      externalIPs: [],
      loadBalancerIPs: type === 'LoadBalancer' ? this.#loadBalancerIps(number) : [],
      loadBalancerSourceRanges: (options.loadBalancerSourceRanges ?? []).map((cidr) => this.#cidr(cidr)),
      healthCheckNodePort: options.hasHealthCheck === true ? parsePort(32_079 + number) : undefined,
      sessionAffinityTimeoutSeconds: options.sessionAffinityTimeoutSeconds,
      labels: {},
    };
  }

  endpoint(service: ScenarioService, pod: PodName, condition: Condition = 'ready'): ScenarioEndpoint {
    return {
      service: service.name,
      ip: this.pod(pod),
      node: nodeOf(pod),
      port: parsePort(8080),
      ready: condition === 'ready',
      serving: condition !== 'terminating',
      terminating: condition !== 'ready',
      zoneHints: [],
      nodeHints: [],
      slice: '1',
    };
  }

  endpoints(service: ScenarioService, ...pods: readonly PodName[]): readonly ScenarioEndpoint[] {
    return pods.map((pod) => this.endpoint(service, pod));
  }

  /** Expectation that exactly these pods answer. */
  forward(pods: readonly PodName[], how: 'direct' | 'masqueraded' | 'masqueraded by packets' = 'direct'): Expectation {
    const isByPackets = dataplaneNamed(this.dataplane).translation === 'packets';
    const masquerade = how === 'masqueraded by packets' ? isByPackets : how === 'masqueraded';
    const to = pods.map((pod) => ({ address: this.pod(pod), port: undefined }));
    return { kind: 'forward', to, masquerade, isHairpinMasqueraded: isByPackets };
  }

  flow({ service, by, from, sourcePort }: Call, expect: Expectation): ScenarioFlow {
    const [port] = service.ports;
    if (port === undefined) throw new InvariantError(`${service.name} has no port`);
    return {
      from,
      fromEndpoint: undefined,
      isFromItself: false,
      sourcePort: sourcePort === undefined ? undefined : parsePort(sourcePort),
      to: this.#target(service, by),
      port: by === 'clusterIP' || by === 'loadBalancerIP' ? port.port : nodePortOf(service),
      protocol: port.protocol,
      expect,
      kept: undefined,
    };
  }

  #target(service: ScenarioService, by: Frontend): IpAddress {
    if (by === 'nodePort') return this.address('172.18.0.11');
    if (by === 'secondNodePort') return this.address('172.18.0.200');
    if (by === 'loadBalancerIP') return this.address(loadBalancerIp(numberOf(service)));
    return this.address(`10.96.0.${9 + numberOf(service)}`);
  }

  #loadBalancerIps(number: number): ScenarioService['loadBalancerIPs'] {
    const own = { ip: this.address(loadBalancerIp(number)), ipMode: undefined };
    return this.#isDualStack ? [own, { ip: this.other.address(loadBalancerIp(number)), ipMode: undefined }] : [own];
  }

  #cidr(ipv4: string): string {
    const [address = '', length] = ipv4.split('/');
    if (length !== '32') throw new InvariantError(`only single addresses are source ranges, not ${ipv4}`);
    return `${this.address(address)}/${this.ipFamily === 'IPv4' ? 32 : 128}`;
  }
}

/** A scenario without steps, whose first state is the content of the cluster. */
export function momentScenario(
  objects: ObjectFactory,
  about: { readonly id: string; readonly title: string; readonly why: string; readonly isDualStack: boolean },
  agent: ScenarioAgent,
): Scenario {
  return {
    id: about.id,
    name: about.title,
    why: about.why,
    ipFamily: objects.ipFamily,
    isDualStack: about.isDualStack,
    dataplane: dataplaneNamed(objects.dataplane),
    runs: { kinds: ['table', 'packets'], because: undefined },
    agent,
    zone: 'zone-a',
    services: [],
    endpoints: [],
    objects: [],
    steps: [],
  };
}

function numberOf({ name }: ScenarioService): number {
  return Number(name.slice(name.lastIndexOf('-') + 1));
}

/** NodePort of a Service. A Service without one must not answer there. */
function nodePortOf(service: ScenarioService): Port {
  return parsePort(30_079 + numberOf(service));
}

function loadBalancerIp(number: number): string {
  return `198.51.100.${6 + number}`;
}
