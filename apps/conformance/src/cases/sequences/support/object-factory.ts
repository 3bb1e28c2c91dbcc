import { InvariantError, parseIp, parsePort } from '@switchyard/core';
import type { IpAddress, IpFamily, Protocol, SourceClass } from '@switchyard/core';
import type { DataplaneName, Expectation, Scenario, ScenarioAgent, ScenarioEndpoint } from '@switchyard/scenarios';
import type { ScenarioFlow, ScenarioService } from '@switchyard/scenarios';
import { dataplaneNamed, endpointAt, inFamily, otherFamilyOf, plainService, usualSetting } from '@switchyard/scenarios';

/** Pods that stand for endpoints in cases written as programs: two on the node under test, two on the other one. */
export type PodName = 'near' | 'near2' | 'far' | 'far2';

/** Their IPv4 addresses in the plan of scenarios; the IPv6 ones show the same digits. */
export const sequencePods: Readonly<Record<PodName, IpAddress>> = {
  near: parseIp('10.244.1.5'),
  near2: parseIp('10.244.1.6'),
  far: parseIp('10.244.2.5'),
  far2: parseIp('10.244.2.6'),
};

/** Conditions of an endpoint, in the order in which a pod has them. */
export type Condition = 'ready' | 'serving-terminating' | 'terminating';

const wordsOfMatrix = { ready: 'ready', 'serving-terminating': 'terminating', terminating: 'stopped' } as const;

/** Frontend that a flow uses. `secondNodePort`: the NodePort at an address that the Node object does not name. */
export type Frontend = 'clusterIP' | 'nodePort' | 'secondNodePort' | 'loadBalancerIP';

/** A Service of a sequence. Absent fields have the API's defaults. */
export interface ServiceOptions extends Partial<
  Pick<ScenarioService, 'externalTrafficPolicy' | 'internalTrafficPolicy' | 'sessionAffinityTimeoutSeconds'>
> {
  /** Default 1. Each has a name, a cluster IP, a load-balancer IP and NodePorts of its own. Up to 200. */
  readonly number?: number;
  readonly type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer';
  readonly protocol?: Protocol;
  /** IPv4 CIDRs of the plan, each of a single address. */
  readonly loadBalancerSourceRanges?: readonly string[];
  readonly hasHealthCheck?: boolean;
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

export function podToClusterIp(service: ScenarioService): Call {
  return { service, by: 'clusterIP', from: 'pod' };
}

export function outsideToNodePort(service: ScenarioService): Call {
  return { service, by: 'nodePort', from: 'outside' };
}

export function outsideToLoadBalancer(service: ScenarioService): Call {
  return { service, by: 'loadBalancerIP', from: 'outside' };
}

/** A call in a check's id: `pod by clusterIP`. */
export function callName({ from, by, inOtherFamily }: Call): string {
  return `${from} by ${by}${inOtherFamily === true ? ', other family' : ''}`;
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
    return inFamily(ipv4, this.ipFamily);
  }

  pod(name: PodName): IpAddress {
    return this.address(sequencePods[name]);
  }

  service(options: ServiceOptions = {}): ScenarioService {
    const {
      number = 1,
      type = 'ClusterIP',
      protocol = 'TCP',
      loadBalancerSourceRanges,
      hasHealthCheck,
      ...rest
    } = options;
    const families = this.#isDualStack ? [this, this.other] : [this];
    const [clusterIP, otherClusterIP] = families.map((one) => one.address(`10.96.0.${9 + number}`));
    const loadBalancerIPs = families.map((one) => ({ ip: one.address(loadBalancerIp(number)), ipMode: undefined }));
    const nodePort = type === 'ClusterIP' ? undefined : parsePort(30_079 + number);
    return {
      ...plainService,
      ...rest,
      name: `shop/cart-${number}`,
      type,
      clusterIP: clusterIP ?? 'None',
      otherClusterIP,
      ports: [{ name: 'main', port: parsePort(80), protocol, nodePort }],
      loadBalancerIPs: type === 'LoadBalancer' ? loadBalancerIPs : [],
      loadBalancerSourceRanges: (loadBalancerSourceRanges ?? []).map((cidr) => this.#cidr(cidr)),
      healthCheckNodePort: hasHealthCheck === true ? parsePort(32_079 + number) : undefined,
    };
  }

  endpoint(service: ScenarioService, pod: PodName, condition: Condition = 'ready'): ScenarioEndpoint {
    const node = pod.startsWith('near') ? 'node1' : 'node2';
    return endpointAt(this.pod(pod), { service: service.name, node, is: wordsOfMatrix[condition] });
  }

  endpoints(service: ScenarioService, ...pods: readonly PodName[]): readonly ScenarioEndpoint[] {
    return pods.map((pod) => this.endpoint(service, pod));
  }

  /** Expectation that exactly these pods answer, and see the client's address. */
  direct(...pods: readonly PodName[]): Expectation {
    return this.#forward(pods, false);
  }

  /** Expectation that exactly these pods answer, and see the node's address. */
  masqueraded(...pods: readonly PodName[]): Expectation {
    return this.#forward(pods, true);
  }

  #forward(pods: readonly PodName[], masquerade: boolean): Expectation {
    const to = pods.map((pod) => ({ address: this.pod(pod), port: undefined }));
    const isHairpinMasqueraded = dataplaneNamed(this.dataplane).translation === 'packets';
    return { kind: 'forward', to, masquerade, isHairpinMasqueraded };
  }

  /** A Service without a NodePort must not answer where its number would be. */
  flow({ service, by, from, sourcePort }: Call, expect: Expectation): ScenarioFlow {
    const [port] = service.ports;
    if (port === undefined) throw new InvariantError(`${service.name} has no port`);
    const number = Number(service.name.slice(service.name.lastIndexOf('-') + 1));
    const addresses: Readonly<Record<Frontend, string>> = {
      clusterIP: `10.96.0.${9 + number}`,
      nodePort: '172.18.0.11',
      secondNodePort: '172.18.0.200',
      loadBalancerIP: loadBalancerIp(number),
    };
    return {
      from,
      fromEndpoint: undefined,
      isFromItself: false,
      sourcePort: sourcePort === undefined ? undefined : parsePort(sourcePort),
      to: this.address(addresses[by]),
      port: by === 'clusterIP' || by === 'loadBalancerIP' ? port.port : parsePort(30_079 + number),
      protocol: port.protocol,
      expect,
      kept: undefined,
    };
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
  const { id, title: name, why, isDualStack } = about;
  const { ipFamily, dataplane } = objects;
  const setting = { ipFamily, isDualStack, dataplane: dataplaneNamed(dataplane), agent };
  return { ...usualSetting, id, name, why, ...setting, services: [], endpoints: [], steps: [] };
}

function loadBalancerIp(number: number): string {
  return `198.51.100.${6 + number}`;
}
