import {
  assertNever,
  buildTable,
  type Cidr,
  cidrFamilyOf,
  type ClusterEvent,
  ClusterState,
  type ClusterStateView,
  type Dirty,
  dirtyServices,
  everythingOf,
  type ForwardingTable,
  hostCidr,
  type IpFamily,
  ipFamilyOf,
  nodeName,
  parseCidr,
  type PodDetector,
  type TableOptions,
  type IpAddress,
} from '@switchyard/core';
import { projections, type RawObjects } from '@switchyard/core/kubernetes';
import { clusterCidrs, familiesOf, type ClusterObject, clusterObjects } from './cluster-objects.ts';
import type { Scenario, ScenarioEndpoint, ScenarioService, ScenarioStep } from './scenario.ts';

/** The table options that correspond to the scenario's agent flags and to what the Node object says. */
export function tableOptionsOf(scenario: Scenario, ipFamily: IpFamily, state: ClusterStateView): TableOptions {
  const { agent } = scenario;
  return {
    ipFamily,
    nodeName: nodeName('node1'),
    masqueradeAll: agent.masqueradeAll,
    terminatingFallback: agent.terminatingFallback,
    externalIps: 'forward',
    routerIpMode: agent.routerIpMode ? 'localOnly' : 'asVip',
    podDetector: podDetectorOf(scenario, ipFamily, state),
    nodePortCidrs: nodePortCidrsOf(scenario, ipFamily, state),
    nodePortsOnLoopback:
      scenario.dataplane.loopbackNodePorts === 'kernel' && agent.localhostNodePorts ? 'kernel' : 'none',
  };
}

function podDetectorOf({ agent }: Scenario, ipFamily: IpFamily, state: ClusterStateView): PodDetector {
  const { detectLocal } = agent;
  switch (detectLocal.kind) {
    case 'none':
      return detectLocal;
    case 'clusterCIDR':
      return { kind: 'cidr', cidr: parseCidr(clusterCidrs[ipFamily]) };
    case 'nodeCIDR': {
      const podCidrs = state.nodes.get(nodeName('node1'))?.podCidrs ?? [];
      const cidr = podCidrs.find((one) => cidrFamilyOf(one) === ipFamily);
      return cidr === undefined ? { kind: 'none' } : { kind: 'cidr', cidr };
    }
    case 'bridgeInterface':
      return { kind: 'interface', name: detectLocal.name };
    case 'interfaceNamePrefix':
      return { kind: 'interfacePrefix', prefix: detectLocal.prefix };
    default:
      return assertNever(detectLocal);
  }
}

/** A list is of the scenario's own family and leaves the other one open, as in the agent. */
function nodePortCidrsOf(scenario: Scenario, ipFamily: IpFamily, state: ClusterStateView): readonly Cidr[] {
  const { nodePortAddresses } = scenario.agent;
  const usual = scenario.dataplane.defaultNodePortAddresses === 'primary' ? 'primary' : [];
  const given = nodePortAddresses === 'default' ? usual : nodePortAddresses;
  if (given === 'primary') {
    const addresses = state.nodes.get(nodeName('node1'))?.addresses ?? [];
    return addresses
      .filter((address) => ipFamilyOf(address) === ipFamily)
      .map(hostCidr)
      .slice(0, 1);
  }
  const isOpen = given.length === 0 || ipFamily !== scenario.ipFamily;
  return isOpen ? [everythingOf(ipFamily)] : given.map(parseCidr);
}

/** The tables of a scenario's families at one moment. */
export type TablesByFamily = ReadonlyMap<IpFamily, ForwardingTable>;

/** Feeds a scenario to the real projections, state and table builder, incrementally, as the agent would. */
export class ScenarioTables {
  readonly #scenario: Scenario;
  readonly #state = new ClusterState({ nodeName: nodeName('node1') });
  #tables: TablesByFamily = new Map();

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
  }

  update(state: ScenarioState): TablesByFamily {
    return this.deliver(recordEvents(this.#scenario, state));
  }

  deliver(events: readonly ClusterEvent[]): TablesByFamily {
    const dirty: Dirty = this.#state.apply(events);
    this.#tables = new Map(
      familiesOf(this.#scenario).map((family) => {
        const options = tableOptionsOf(this.#scenario, family, this.#state);
        return [family, buildTable(this.#state, dirtyServices(dirty), this.#tables.get(family), options)];
      }),
    );
    return this.#tables;
  }
}

const resources = ['Service', 'EndpointSlice', 'Node', 'ServiceCIDR'] as const;

/** The records of a state's objects that the projections accept, by resource. */
export function recordsOf<K extends keyof RawObjects>(objects: readonly ClusterObject[], kind: K): readonly never[] {
  return objects
    .filter((object) => object.kind === kind)
    .flatMap((object) => {
      // `never` lets the caller name the record type of `kind`. On the wire, times are text.
      const projected = projections[kind](object as unknown as RawObjects[K]);
      return projected.status === 'record' ? [projected.record as never] : [];
    });
}

/** The four `replace` events with which a source delivers a state. */
export function recordEvents(scenario: Scenario, state: ScenarioState): readonly ClusterEvent[] {
  const objects = clusterObjects(scenario, state);
  return resources.map((resource) => ({ kind: 'replace', resource, items: recordsOf(objects, resource) }));
}

/** The cluster at one point of a scenario. */
export interface ScenarioState {
  readonly services: ReadonlyMap<string, ScenarioService>;
  readonly endpoints: readonly ScenarioEndpoint[];
  /** Address of node1's Node object in the scenario's own family; undefined: the address of the plan. */
  readonly nodeAddress: IpAddress | undefined;
  /** ServiceCIDR objects by name, beside the one that the cluster began with. */
  readonly serviceCidrs: ReadonlyMap<string, string>;
}

/** A cluster without Services. */
export const emptyState: ScenarioState = {
  services: new Map(),
  endpoints: [],
  nodeAddress: undefined,
  serviceCidrs: new Map(),
};

/** The state before the first step. */
export function firstState(scenario: Scenario): ScenarioState {
  return {
    ...emptyState,
    services: new Map(scenario.services.map((service) => [service.name, service])),
    endpoints: scenario.endpoints,
  };
}

/** The state after a step; the same object if the step only checks. */
export function nextState(state: ScenarioState, step: ScenarioStep): ScenarioState {
  switch (step.kind) {
    case 'putService':
      return { ...state, services: new Map([...state.services, [step.service.name, step.service]]) };
    case 'removeService':
      return {
        ...state,
        services: new Map([...state.services].filter(([name]) => name !== step.service)),
        endpoints: state.endpoints.filter((endpoint) => endpoint.service !== step.service),
      };
    case 'putEndpoint':
      return { ...state, endpoints: [...without(state, step.endpoint), step.endpoint] };
    case 'removeEndpoint':
      return {
        ...state,
        endpoints: state.endpoints.filter((one) => one.service !== step.service || one.ip !== step.ip),
      };
    case 'nodeAddress':
      return { ...state, nodeAddress: step.address };
    case 'putServiceCidr':
      return { ...state, serviceCidrs: new Map([...state.serviceCidrs, [step.name, step.cidr]]) };
    case 'removeServiceCidr':
      return { ...state, serviceCidrs: new Map([...state.serviceCidrs].filter(([name]) => name !== step.name)) };
    default:
      return state;
  }
}

/** An endpoint replaces the one with the same Service, address and slice. */
function without(state: ScenarioState, endpoint: ScenarioEndpoint): readonly ScenarioEndpoint[] {
  return state.endpoints.filter(
    (one) => one.service !== endpoint.service || one.ip !== endpoint.ip || one.slice !== endpoint.slice,
  );
}
