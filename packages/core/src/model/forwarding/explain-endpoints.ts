import { addressAndPort } from '../ip/port.ts';
import type { TrafficPolicy } from '../records/records.ts';
import type { Reason } from './explain-types.ts';
import type { Endpoint, ServiceForwarding } from './forwarding-table.ts';
import { canServeWhileTerminating } from '../policy/decide.ts';

/**
 * Returns the reasons for a set of endpoints: for its narrowing or widening, then one for each known
 * endpoint that is not in it, in the order of `knownEndpoints`.
 */
export function describeSet(
  service: ServiceForwarding,
  policy: TrafficPolicy,
  chosen: readonly Endpoint[],
): readonly Reason[] {
  const reasons: Reason[] = [];
  const isFallback = chosen.length > 0 && chosen.every((endpoint) => !endpoint.ready);
  const topology = policy === 'Cluster' && !isFallback ? service.topology : 'none';
  if (topology === 'sameNode') {
    reasons.push({ code: 'topologySameNode', text: 'every ready endpoint has node hints and some name this node' });
  }
  if (topology === 'sameZone') {
    const text = "every ready endpoint has zone hints and some name this node's zone";
    reasons.push({ code: 'topologySameZone', text });
  }
  if (isFallback) {
    const where = policy === 'Local' ? 'on this node' : 'in the cluster';
    const text = `no endpoint ${where} is ready, so those that still serve while terminating are used (KEP-1669)`;
    reasons.push({ code: 'terminatingFallback', text });
  }
  const places = new Set(chosen.map(placeOf));
  for (const endpoint of service.knownEndpoints) {
    if (!places.has(placeOf(endpoint)))
      reasons.push(excluded(endpoint, { policy, topology, isSetEmpty: chosen.length === 0 }));
  }
  return reasons;
}

interface ChosenSet {
  readonly policy: TrafficPolicy;
  readonly topology: ServiceForwarding['topology'];
  readonly isSetEmpty: boolean;
}

function excluded(endpoint: Endpoint, { policy, topology, isSetEmpty }: ChosenSet): Reason {
  const place = placeOf(endpoint);
  const node = endpoint.nodeName ?? 'no node';
  if (policy === 'Local' && !endpoint.isLocal) return { code: 'endpointNotLocal', text: `${place} is on ${node}` };
  if (endpoint.ready && topology === 'sameNode') {
    return { code: 'endpointOtherNode', text: `${place} is hinted for node ${endpoint.nodeHints.join(', ')}` };
  }
  if (endpoint.ready && topology === 'sameZone') {
    return { code: 'endpointOtherZone', text: `${place} is hinted for zone ${endpoint.zoneHints.join(', ')}` };
  }
  if (canServeWhileTerminating(endpoint)) {
    // If the set is empty although an endpoint could serve, only the option can exclude it.
    const why = isSetEmpty ? 'still serves, but the terminating fallback is off' : 'others are ready';
    return { code: 'endpointTerminating', text: `${place} is terminating; ${why}` };
  }
  const state = endpoint.terminating ? 'terminating and not serving' : 'not ready';
  return { code: 'endpointNotReady', text: `${place} is ${state}` };
}

function placeOf(endpoint: Endpoint): string {
  return addressAndPort(endpoint.address, endpoint.port);
}
