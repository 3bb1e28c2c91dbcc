import type { Endpoint, TopologyMode } from '../forwarding/forwarding-table.ts';
import type { NodeName } from '../records/keys.ts';

/** Where this node is. An empty zone means that the Node carries no zone label. */
export interface NodePlace {
  readonly name: NodeName;
  readonly zone: string;
}

/**
 * How hints narrow the `Cluster` set here (KEP-2433, KEP-3015). A kind of hint applies only if every
 * ready endpoint carries it and at least one names this node or zone; node hints are tried first.
 * The Service's annotation and `trafficDistribution` are not asked: who writes hints decided already.
 */
export function topologyMode(endpoints: readonly Endpoint[], here: NodePlace): TopologyMode {
  const ready = endpoints.filter((endpoint) => endpoint.ready);
  if (hintsApply(ready, (endpoint) => endpoint.nodeHints, here.name)) return 'sameNode';
  return hintsApply(ready, (endpoint) => endpoint.zoneHints, here.zone) ? 'sameZone' : 'none';
}

/** Whether a ready endpoint may be used under a topology mode. */
export function matchesTopology(endpoint: Endpoint, mode: TopologyMode, here: NodePlace): boolean {
  if (mode === 'sameNode') return endpoint.nodeHints.includes(here.name);
  return mode === 'none' || endpoint.zoneHints.includes(here.zone);
}

function hintsApply(
  ready: readonly Endpoint[],
  hintsOf: (endpoint: Endpoint) => readonly string[],
  wanted: string,
): boolean {
  let isNamed = false;
  for (const endpoint of ready) {
    const hints = hintsOf(endpoint);
    if (hints.length === 0) return false;
    isNamed ||= hints.includes(wanted);
  }
  return isNamed;
}
