import { buildTable } from '../model/forwarding/build-table.ts';
import type { TableOptions, ForwardingTable } from '../model/forwarding/forwarding-table.ts';
import type { EndpointSliceRecord, NodeRecord, ServiceCidrRecord, ServiceRecord } from '../model/records/records.ts';
import { nodeName } from '../model/records/keys.ts';
import { ClusterState } from '../model/state/cluster-state.ts';
import { tableOptions } from './builders.ts';
import { replaceAll } from './expand-states.ts';

/** Everything a test cluster consists of; what is left out is an empty list. */
export interface ClusterSpec {
  readonly services?: readonly ServiceRecord[];
  readonly slices?: readonly EndpointSliceRecord[];
  readonly nodes?: readonly NodeRecord[];
  readonly serviceCidrs?: readonly ServiceCidrRecord[];
}

/** State after a cluster was listed, as our Node `here` sees it. */
export function stateOf(spec: ClusterSpec, here = 'n1'): ClusterState {
  const state = new ClusterState({ nodeName: nodeName(here) });
  state.apply(replaceAll(spec));
  return state;
}

/** The table of a cluster, built from nothing. */
export function tableOf(spec: ClusterSpec, options: TableOptions = tableOptions()): ForwardingTable {
  return buildTable(stateOf(spec, options.nodeName), 'all', undefined, options);
}
