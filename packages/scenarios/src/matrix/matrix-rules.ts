import { InvariantError } from '@switchyard/core';
import type { DataplaneTraits, Protocol, SourceClass, TrafficPolicy } from '@switchyard/core';
import type { ScenarioEndpoint } from '../scenario.ts';

// Required outcomes of the packets of the matrix, derived from the KEPs and the API's field docs. Independent of core's `explain`,
// with which they are compared.

/** A kind of frontend, in the words of forwarding tables. */
export type MatrixFrontend = 'clusterIP' | 'externalIP' | 'loadBalancerIP' | 'nodePort';

/** One packet of the matrix. */
export interface MatrixQuestion {
  readonly frontend: MatrixFrontend;
  /** The internal one of a cluster IP, the external one of all others. */
  readonly policy: TrafficPolicy;
  readonly endpoints: readonly ScenarioEndpoint[];
  readonly from: SourceClass;
  readonly protocol: Protocol;
  readonly dataplane: DataplaneTraits;
}

/** One rule with its condition. The first matching rule of a list decides. */
export interface MatrixRule<Given, Decision> {
  readonly id: string;
  /** With its KEP, API field or kube-proxy behaviour. */
  readonly sentence: string;
  readonly when: (given: Given) => boolean;
  readonly decides: (given: Given) => Decision;
}

/** Which endpoints a packet may reach: those of the cluster, or of this node alone. */
export const reachRules: readonly MatrixRule<MatrixQuestion, TrafficPolicy>[] = [
  {
    id: 'internal-policy',
    sentence: 'KEP-2086: internalTrafficPolicy says which endpoints the cluster IP may use, whoever sends',
    when: ({ frontend }) => frontend === 'clusterIP',
    decides: ({ policy }) => policy,
  },
  {
    id: 'external-policy',
    sentence: 'API: externalTrafficPolicy says which endpoints external traffic may use',
    when: ({ from }) => from === 'outside',
    decides: ({ policy }) => policy,
  },
  {
    id: 'short-circuit',
    sentence: 'API: traffic to an external frontend from within the cluster always gets "Cluster" semantics',
    when: () => true,
    decides: () => 'Cluster',
  },
];

/** A packet, and the endpoints in its reach. */
export interface Reached extends MatrixQuestion {
  readonly reach: TrafficPolicy;
  readonly reached: readonly ScenarioEndpoint[];
}

/** Outcome of a packet, without its source address. */
export type MatrixOutcome =
  | { readonly kind: 'forward'; readonly to: readonly ScenarioEndpoint[] }
  | { readonly kind: 'drop' | 'reject' | 'pass' };

const isReady = ({ ready }: ScenarioEndpoint): boolean => ready === true;
const isFallback = ({ serving, terminating }: ScenarioEndpoint): boolean => serving === true && terminating === true;

/** Rules for the endpoints of a packet, or for its refusal. */
export const outcomeRules: readonly MatrixRule<Reached, MatrixOutcome>[] = [
  {
    id: 'ready-first',
    sentence: 'API: endpoints with the condition ready get the traffic, and no others while there is one in reach',
    when: ({ reached }) => reached.some(isReady),
    decides: ({ reached }) => ({ kind: 'forward', to: reached.filter(isReady) }),
  },
  {
    id: 'terminating-fallback',
    sentence:
      'KEP-1669: where no endpoint in reach is ready, those that still serve while they terminate get the traffic',
    when: ({ reached }) => reached.some(isFallback),
    decides: ({ reached }) => ({ kind: 'forward', to: reached.filter(isFallback) }),
  },
  {
    id: 'nobody-here',
    sentence:
      'API: with the policy Local, what no endpoint of this node can take is dropped, while another node has a ready one',
    when: ({ reach, endpoints }) => reach === 'Local' && endpoints.some(isReady),
    decides: () => ({ kind: 'drop' }),
  },
  {
    id: 'nobody-here-terminating-elsewhere',
    sentence:
      'KEP-1669 with the policy Local: another node whose endpoints only serve while they terminate is a reason to drop, too',
    when: ({ reach, endpoints }) => reach === 'Local' && endpoints.some(isFallback),
    decides: () => ({ kind: 'drop' }),
  },
  {
    id: 'left-to-routing',
    sentence:
      'kube-proxy: its iptables mode refuses nothing that the node itself sends to an external address; it goes where routes lead',
    when: ({ dataplane, from, frontend }) =>
      dataplane.externalIpsRefuse === 'arriving' &&
      from === 'node' &&
      (frontend === 'externalIP' || frontend === 'loadBalancerIP'),
    decides: () => ({ kind: 'pass' }),
  },
  {
    id: 'nobody',
    sentence: 'kube-proxy: a Service without any usable endpoint answers with an ICMP error, not with silence',
    when: () => true,
    decides: () => ({ kind: 'reject' }),
  },
];

/** Whether the endpoint sees the node's address instead of the sender's. Only of what is forwarded. */
export const masqueradeRules: readonly MatrixRule<MatrixQuestion, boolean>[] = [
  {
    id: 'by-socket',
    sentence:
      'eBPF: a socket of a pod or of the node goes to the endpoint itself, so no packet is translated; but for SCTP',
    when: ({ dataplane, from, protocol }) =>
      dataplane.translation === 'sockets' && from !== 'outside' && protocol !== 'SCTP',
    decides: () => false,
  },
  {
    id: 'pod-keeps-its-address',
    sentence: 'kube-proxy: what a pod sends to a cluster IP keeps its source address',
    when: ({ frontend, from }) => frontend === 'clusterIP' && from === 'pod',
    decides: () => false,
  },
  {
    id: 'not-a-pod-to-cluster-ip',
    sentence: 'kube-proxy --cluster-cidr: what does not come from a pod and goes to a cluster IP is masqueraded',
    when: ({ frontend }) => frontend === 'clusterIP',
    decides: () => true,
  },
  {
    id: 'external-cluster',
    sentence:
      'API: externalTrafficPolicy Cluster may obscure the client address: whatever came by an external frontend is masqueraded',
    when: ({ policy }) => policy === 'Cluster',
    decides: () => true,
  },
  {
    id: 'external-local',
    sentence: 'API: externalTrafficPolicy Local preserves the client source address',
    when: ({ from }) => from === 'outside',
    decides: () => false,
  },
  {
    id: 'short-circuit-pod',
    sentence:
      'kube-proxy: a pod that reaches all endpoints of a Local Service by an external frontend keeps its address',
    when: ({ from }) => from === 'pod',
    decides: () => false,
  },
  {
    id: 'short-circuit-node',
    sentence:
      'kube-proxy: the node that reaches all endpoints of a Local Service by an external frontend is masqueraded',
    when: () => true,
    decides: () => true,
  },
];

/** Status of a healthCheckNodePort by the number of ready endpoints on this node. */
export const healthRules: readonly MatrixRule<number, 200 | 503>[] = [
  {
    id: 'healthy',
    sentence: 'API: the healthCheckNodePort answers 200 while the node has a ready endpoint, and says how many',
    when: (ready) => ready > 0,
    decides: () => 200,
  },
  {
    id: 'unhealthy',
    sentence: 'KEP-1669: an endpoint that terminates fails the health check, although it may still get traffic',
    when: () => true,
    decides: () => 503,
  },
];

/** Returns the required health check of a Service with these endpoints on this node, and the rule that decides it. */
export function healthAnswerOf(endpoints: readonly ScenarioEndpoint[]): {
  readonly status: 200 | 503;
  readonly localEndpoints: number;
  readonly rule: string;
} {
  const localEndpoints = endpoints.filter((one) => one.node === 'node1' && isReady(one)).length;
  const rule = firstOf(healthRules, localEndpoints);
  return { status: rule.decides(localEndpoints), localEndpoints, rule: rule.id };
}

/** Required outcome of a packet, and the rules that decide it. */
export interface MatrixAnswer {
  readonly outcome: MatrixOutcome;
  /** Whether the endpoint sees the node's address; false for packets that are not forwarded. */
  readonly masquerade: boolean;
  readonly rules: readonly string[];
}

/** Applies the rules to a packet. */
export function answerOf(question: MatrixQuestion): MatrixAnswer {
  const reachRule = firstOf(reachRules, question);
  const reach = reachRule.decides(question);
  const reached = reach === 'Cluster' ? question.endpoints : question.endpoints.filter(({ node }) => node === 'node1');
  const outcomeRule = firstOf(outcomeRules, { ...question, reach, reached });
  const outcome = outcomeRule.decides({ ...question, reach, reached });
  if (outcome.kind !== 'forward') {
    return { outcome, masquerade: false, rules: [reachRule.id, outcomeRule.id] };
  }
  const masqueradeRule = firstOf(masqueradeRules, question);
  const rules = [reachRule.id, outcomeRule.id, masqueradeRule.id];
  return { outcome, masquerade: masqueradeRule.decides(question), rules };
}

/** The last rule of each list always matches. */
function firstOf<Given, Decision>(
  rules: readonly MatrixRule<Given, Decision>[],
  given: Given,
): MatrixRule<Given, Decision> {
  const found = rules.find(({ when }) => when(given));
  if (found === undefined) throw new InvariantError('no rule of the matrix speaks of this packet');
  return found;
}
