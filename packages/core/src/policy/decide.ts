import type { Decision, Endpoint, Frontend, SourceClass } from '../forwarding/forwarding-table.ts';
import type { TrafficPolicy } from '../records/service.ts';
import { assertNever } from '../result.ts';

/** What the decision for one Service port depends on. */
export interface PolicyInput {
  readonly internalTrafficPolicy: TrafficPolicy;
  readonly externalTrafficPolicy: TrafficPolicy;
  readonly endpoints: Readonly<Record<TrafficPolicy, readonly Endpoint[]>>;
  /** Usable anywhere in the cluster, under any policy. */
  readonly hasAnyEndpoints: boolean;
  /** Applies to cluster IPs only. */
  readonly masqueradeAll: boolean;
  readonly canDetectPods: boolean;
}

/** The one place where forward, reject, drop and masquerade are decided (kube-proxy facts 7 to 10). */
export function decide(kind: Frontend['kind'], source: SourceClass, input: PolicyInput): Decision {
  if (kind === 'clusterIP') {
    const masquerade = input.masqueradeAll || (input.canDetectPods && source !== 'pod');
    return route(input, input.internalTrafficPolicy, masquerade);
  }
  if (input.externalTrafficPolicy === 'Cluster') return route(input, 'Cluster', true);
  switch (source) {
    case 'pod':
      return route(input, input.canDetectPods ? 'Cluster' : 'Local', false); // short circuit
    case 'node':
      return route(input, 'Cluster', true); // short circuit
    case 'outside':
      return route(input, 'Local', false);
    default:
      return assertNever(source);
  }
}

function route(input: PolicyInput, to: TrafficPolicy, masquerade: boolean): Decision {
  if (!input.hasAnyEndpoints) return { kind: 'reject' };
  if (input.endpoints[to].length === 0) return { kind: 'drop' };
  return { kind: 'forward', to, masquerade };
}
