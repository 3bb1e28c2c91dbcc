import { isEqual } from '../equal.ts';
import type { Endpoint, ServiceForwarding } from './forwarding-table.ts';

/** Whether two versions of one Service port are equal, so that the older object can stay (A11). */
export function isSameForwarding(a: ServiceForwarding, b: ServiceForwarding): boolean {
  if (a === b) return true;
  return (
    a.key === b.key &&
    a.service === b.service &&
    a.protocol === b.protocol &&
    a.topology === b.topology &&
    areEndpointsEqual(a.knownEndpoints, b.knownEndpoints) &&
    isSameSet(a, b, 'Cluster') &&
    isSameSet(a, b, 'Local') &&
    isEqual(a.frontends, b.frontends) &&
    isEqual(a.lostFrontends, b.lostFrontends) &&
    isEqual(a.leftToRoute, b.leftToRoute) &&
    isEqual(a.policies, b.policies) &&
    isEqual(a.sessionAffinity, b.sessionAffinity)
  );
}

/** A set that is all known endpoints needs no second comparison: most are. */
function isSameSet(a: ServiceForwarding, b: ServiceForwarding, policy: 'Cluster' | 'Local'): boolean {
  const areBothAll = a.endpoints[policy] === a.knownEndpoints && b.endpoints[policy] === b.knownEndpoints;
  return areBothAll || areEndpointsEqual(a.endpoints[policy], b.endpoints[policy]);
}

function areEndpointsEqual(a: readonly Endpoint[], b: readonly Endpoint[]): boolean {
  return a === b || (a.length === b.length && a.every((endpoint, index) => isSameEndpoint(endpoint, b[index])));
}

function isSameEndpoint(a: Endpoint, b: Endpoint | undefined): boolean {
  return (
    b !== undefined &&
    a.address === b.address &&
    a.port === b.port &&
    a.isLocal === b.isLocal &&
    a.nodeName === b.nodeName &&
    a.ready === b.ready &&
    a.serving === b.serving &&
    a.terminating === b.terminating &&
    isEqual(a.zoneHints, b.zoneHints) &&
    isEqual(a.nodeHints, b.nodeHints)
  );
}
