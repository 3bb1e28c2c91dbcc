import {
  buildTable,
  type ClusterEvent,
  ClusterState,
  type Dirty,
  dirtyServices,
  type ForwardingTable,
  type IpFamily,
  nodeName,
  parseCidr,
  type TableOptions,
} from '@switchyard/core';
import { clusterCidrs, familiesOf } from './cluster-objects.ts';
import type { Scenario } from './scenario.ts';
import { recordEvents } from './scenario-records.ts';
import type { ScenarioState } from './scenario-state.ts';

const everything: Readonly<Record<IpFamily, string>> = { IPv4: '0.0.0.0/0', IPv6: '::/0' };

/** The table options that correspond to the scenario's agent flags. Its NodePort CIDRs are of its own family. */
export function tableOptionsOf(scenario: Scenario, ipFamily: IpFamily = scenario.ipFamily): TableOptions {
  const { agent } = scenario;
  const isOpen = agent.nodePortAddresses.length === 0 || ipFamily !== scenario.ipFamily;
  return {
    ipFamily,
    nodeName: nodeName('node1'),
    masqueradeAll: agent.masqueradeAll,
    terminatingFallback: agent.terminatingFallback,
    podDetector: agent.detectsPods ? { kind: 'cidr', cidr: parseCidr(clusterCidrs[ipFamily]) } : { kind: 'none' },
    nodePortCidrs: (isOpen ? [everything[ipFamily]] : agent.nodePortAddresses).map(parseCidr),
  };
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
        const options = tableOptionsOf(this.#scenario, family);
        return [family, buildTable(this.#state, dirtyServices(dirty), this.#tables.get(family), options)];
      }),
    );
    return this.#tables;
  }
}
