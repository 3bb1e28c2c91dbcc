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
} from '@switchyard/core';
import { clusterCidrs, familiesOf } from './cluster-objects.ts';
import type { Scenario } from './scenario.ts';
import { recordEvents } from './scenario-records.ts';
import type { ScenarioState } from './scenario-state.ts';

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

  /** The tables for a state of the scenario. */
  update(state: ScenarioState): TablesByFamily {
    return this.deliver(recordEvents(this.#scenario, state));
  }

  /** The tables after some events. */
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
