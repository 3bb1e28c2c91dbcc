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

const reject: Decision = { kind: 'reject' };
const drop: Decision = { kind: 'drop' };
/** Decisions are few and frozen by type; sharing them keeps 10,000 services small. */
const forward: Readonly<Record<TrafficPolicy, { readonly plain: Decision; readonly masqueraded: Decision }>> = {
  Cluster: {
    plain: { kind: 'forward', to: 'Cluster', masquerade: false },
    masqueraded: { kind: 'forward', to: 'Cluster', masquerade: true },
  },
  Local: {
    plain: { kind: 'forward', to: 'Local', masquerade: false },
    masqueraded: { kind: 'forward', to: 'Local', masquerade: true },
  },
};

/**
 * Decisions of a load-balancer IP with ipMode `Router`, which is a frontend only while this node has an endpoint to
 * forward to. The endpoint is here, so its answer comes back through this node and no sender is masqueraded.
 */
export const routerDecisions: Frontend['decisions'] = {
  pod: forward.Local.plain,
  node: forward.Local.plain,
  outside: forward.Local.plain,
};

/** The one place where forward, reject, drop and masquerade are decided for all other frontends (kube-proxy facts 7 to 10). */
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
  if (!input.hasAnyEndpoints) return reject;
  if (input.endpoints[to].length === 0) return drop;
  return masquerade ? forward[to].masqueraded : forward[to].plain;
}
