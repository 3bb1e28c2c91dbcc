import { type DataplaneTraits, ipFamilies, type Protocol, type SourceClass } from '@switchyard/core';
import { type EndpointState, endpointsOf, endpointStates } from './endpoint-states.ts';
import { matrixFrontends, matrixPolicies, type MatrixPlace, serviceOf, targetOf } from './matrix-places.ts';
import { answerOf, healthAnswerOf } from './matrix-rules.ts';
import type { MatrixFrontend, MatrixAnswer, MatrixQuestion, MatrixOutcome } from './matrix-rules.ts';
import { plainAgent, runKinds } from '../scenario.ts';
import type { Expectation, Scenario, ScenarioFlow, ScenarioStep } from '../scenario.ts';

/** One Service of the matrix, and the required outcomes of packets to it. */
export interface MatrixScenario extends MatrixPlace {
  /** A flow for each source class and protocol, and a health check where there is one; no step changes anything. */
  readonly scenario: Scenario;
  /** Ids of the rules by which it is judged, each once, in the order of their first use. */
  readonly rules: readonly string[];
}

/**
 * Policy by endpoint state by frontend kind by family: Services that share no name, address or NodePort, so that all can be in
 * one cluster together. Each has a flow of every source class and protocol, and its health
 * check where the API has one. Their expectations are `matrix-rules.ts`. The same traits return the same scenarios.
 */
export function matrixScenarios(dataplane: DataplaneTraits): readonly MatrixScenario[] {
  const all = scenariosByDataplane.get(dataplane) ?? makeMatrix(dataplane);
  scenariosByDataplane.set(dataplane, all);
  return all;
}

const scenariosByDataplane = new WeakMap<DataplaneTraits, readonly MatrixScenario[]>();

function makeMatrix(dataplane: DataplaneTraits): readonly MatrixScenario[] {
  return ipFamilies.flatMap((ipFamily) =>
    matrixFrontends.flatMap((frontend) =>
      matrixPolicies.flatMap((policy) =>
        endpointStates.map((state) =>
          matrixScenario({ frontend, policy, state: state.id, ipFamily }, state, dataplane),
        ),
      ),
    ),
  );
}

const idPrefix = 'matrix-';

/** Whether a scenario is one of these, and not a file: its steps are named by what they look at, not by line. */
export function isOfMatrix({ id }: Pick<Scenario, 'id'>): boolean {
  return id.startsWith(idPrefix);
}

const sources: readonly SourceClass[] = ['pod', 'node', 'outside'];
const protocols: readonly Protocol[] = ['TCP', 'UDP', 'SCTP'];

function matrixScenario(place: MatrixPlace, state: EndpointState, dataplane: DataplaneTraits): MatrixScenario {
  const service = serviceOf(place);
  const endpoints = endpointsOf(state, service.name, place.ipFamily);
  const answered = sources.flatMap((from) =>
    protocols.map((protocol) => {
      const question: MatrixQuestion = { ...place, endpoints, from, protocol, dataplane };
      const answer = answerOf(question);
      return { from, answer, flow: flowOf(targetOf(place), question, answer) };
    }),
  );
  // Protocols differ in masquerading alone.
  const outcomes = outcomesInWords(new Map(answered.map(({ from, answer }) => [from, answer.outcome])));
  const health = service.healthCheckNodePort === undefined ? undefined : healthAnswerOf(endpoints);
  const rules = [...answered.flatMap(({ answer }) => answer.rules), ...(health === undefined ? [] : [health.rule])];
  return {
    ...place,
    rules: [...new Set(rules)],
    scenario: {
      id: `${idPrefix}${place.frontend}-${place.policy}-${place.state}`,
      name: `${frontendWords[place.frontend]} with ${policyWords(place)}, where ${state.words}: ${outcomes}`,
      why: whyOf(place),
      ipFamily: place.ipFamily,
      dataplane,
      ...usualSetting,
      services: [service],
      endpoints,
      steps: [
        ...answered.map(({ flow }, index) => ({ kind: 'flow', flow, line: index + 1 }) as const),
        ...(health === undefined ? [] : [healthStep(place, service.name, health)]),
      ],
    },
  };
}

/** Common settings of all scenarios of the matrix. */
export const usualSetting: Pick<Scenario, 'isDualStack' | 'runs' | 'agent' | 'zone' | 'objects'> = {
  isDualStack: false,
  runs: { kinds: runKinds, because: undefined },
  agent: plainAgent,
  zone: 'zone-a',
  objects: [],
};

const frontendWords: Readonly<Record<MatrixFrontend, string>> = {
  clusterIP: 'a cluster IP',
  externalIP: 'an external IP',
  loadBalancerIP: 'a load-balancer IP',
  nodePort: 'a NodePort',
};

function policyWords({ frontend, policy }: MatrixPlace): string {
  return `${frontend === 'clusterIP' ? 'internalTrafficPolicy' : 'externalTrafficPolicy'} ${policy}`;
}

function whyOf({ frontend, policy, state }: MatrixPlace): string {
  const field =
    frontend === 'clusterIP'
      ? `KEP-2086: internalTrafficPolicy ${policy} of a cluster IP`
      : `API: externalTrafficPolicy ${policy} of ${frontendWords[frontend]}`;
  const conditions = /terminating|stopped/.test(state)
    ? 'KEP-1669: serving-terminating endpoints are the fallback where no ready one is in reach'
    : 'EndpointSlice condition ready';
  return `${field}; ${conditions}`;
}

/** The flow of a question, and what the rules answer. */
export function flowOf(
  target: Pick<ScenarioFlow, 'to' | 'port'>,
  question: MatrixQuestion,
  answer: MatrixAnswer,
): ScenarioFlow {
  const { from, protocol } = question;
  return {
    from,
    fromEndpoint: undefined,
    isFromItself: false,
    sourcePort: undefined,
    ...target,
    protocol,
    expect: expectationOf(question, answer),
    kept: undefined,
  };
}

function healthStep(
  { ipFamily }: MatrixPlace,
  service: string,
  { status, localEndpoints }: ReturnType<typeof healthAnswerOf>,
): ScenarioStep {
  const line = sources.length * protocols.length + 1;
  return { kind: 'healthCheck', check: { service, ipFamily, status, localEndpoints }, line };
}

/** A rule's answer as a scenario's expectation. */
function expectationOf({ dataplane, protocol }: MatrixQuestion, { outcome, masquerade }: MatrixAnswer): Expectation {
  if (outcome.kind !== 'forward') return outcome;
  return {
    kind: 'forward',
    to: outcome.to.map(({ ip }) => ({ address: ip, port: undefined })),
    masquerade,
    isHairpinMasqueraded: dataplane.translation === 'packets' || protocol === 'SCTP',
  };
}

const senders: Readonly<Record<SourceClass, string>> = { pod: 'a pod', node: 'the node', outside: 'a client outside' };

/** Describes the outcome of each sender, equal outcomes together: `a pod and the node reach the one elsewhere; a client outside gets no answer`. */
export function outcomesInWords(outcomes: ReadonlyMap<SourceClass, MatrixOutcome>): string {
  const byFate = Map.groupBy(outcomes, ([, outcome]) => fateOf(outcome));
  return [...byFate]
    .map(([fate, members]) => `${listed(members.map(([from]) => senders[from]))} ${verb(fate, members.length)}`)
    .join('; ');
}

function fateOf(outcome: MatrixOutcome): string {
  switch (outcome.kind) {
    case 'forward': {
      const places = new Set(outcome.to.map(({ node }) => (node === 'node1' ? 'here' : 'elsewhere')));
      return `reach ${places.size === 2 ? 'both' : `the one ${[...places].join('')}`}`;
    }
    case 'drop':
      return 'get no answer';
    case 'reject':
      return 'are refused';
    case 'pass':
      return 'are left to routing';
  }
}

function verb(fate: string, count: number): string {
  if (count > 1) return fate;
  return fate
    .replace(/^reach/, 'reaches')
    .replace(/^get/, 'gets')
    .replace(/^are/, 'is');
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
