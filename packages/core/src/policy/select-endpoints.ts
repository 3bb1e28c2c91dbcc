import type { Endpoint } from '../forwarding/forwarding-table.ts';
import type { TrafficPolicy } from '../records/service.ts';
import { matchesTopology, type NodePlace, topologyMode } from './topology.ts';

/** What a selection depends on besides the endpoints. */
export interface SelectionContext {
  readonly here: NodePlace;
  /** `off` is Kubernetes <= 1.25: terminating endpoints are never used. */
  readonly terminatingFallback: 'on' | 'off';
}

/**
 * Endpoints a policy may use from this node, in the order given (callers pass them sorted by address).
 *
 * Ready endpoints first, narrowed by topology hints for `Cluster` only; if no endpoint is ready,
 * those still serving while terminating (KEP-1669), for which hints do not count. `Cluster` and
 * `Local` fall back independently. An empty result means "nothing usable", never "not computed".
 * Returns `all` itself when nothing is left out.
 */
export function selectEndpoints(
  all: readonly Endpoint[],
  policy: TrafficPolicy,
  context: SelectionContext,
): readonly Endpoint[] {
  const mode = policy === 'Cluster' ? topologyMode(all, context.here) : 'none';
  const candidates = policy === 'Local' ? keep(all, (endpoint) => endpoint.isLocal) : all;
  const ready = keep(candidates, (endpoint) => endpoint.ready && matchesTopology(endpoint, mode, context.here));
  if (ready.length > 0 || context.terminatingFallback === 'off') return ready;
  return keep(candidates, canServeWhileTerminating);
}

/** Whether any endpoint is usable anywhere in the cluster, under any policy. */
export function hasUsableEndpoint(all: readonly Endpoint[], terminatingFallback: 'on' | 'off'): boolean {
  return all.some((endpoint) => endpoint.ready || (terminatingFallback === 'on' && canServeWhileTerminating(endpoint)));
}

/** Whether an endpoint can be used when no ready one exists. */
export function canServeWhileTerminating(endpoint: Endpoint): boolean {
  return endpoint.serving && endpoint.terminating;
}

/** `filter` that returns its input when it keeps everything, so that equal sets share one array. */
function keep(endpoints: readonly Endpoint[], test: (endpoint: Endpoint) => boolean): readonly Endpoint[] {
  return endpoints.every(test) ? endpoints : endpoints.filter(test);
}
