import { type DataplaneTraits, type IpFamily, type IpAddress, ipFamilies, parsePort } from '@switchyard/core';
import { inFamily } from '../other-family.ts';
import { type Scenario, type ScenarioEndpoint, type ScenarioService, type ScenarioStep } from '../scenario.ts';
import { type Condition, endpointAt } from './endpoint-states.ts';
import { plainService } from './matrix-places.ts';
import { answerOf, healthAnswerOf, type MatrixQuestion } from './matrix-rules.ts';
import { flowOf, usualSetting } from './matrix-scenarios.ts';

/** Conditions of an endpoint whose pod is deleted, in their order; afterwards the endpoint is removed. */
const ending: readonly Condition[] = ['ready', 'terminating', 'stopped'];
/** Side of the endpoint that changes. */
type Turn = 'h' | 'e';

/**
 * All twenty orders in which an endpoint here (`h`) and one elsewhere (`e`) can take the three steps from ready to removed, each
 * as a word of six letters.
 */
export const endingOrders: readonly string[] = interleavings(ending.length, ending.length);

/**
 * A minimal set of orders with all 24 steps from every pair of conditions. More orders test nothing new, and in the lab every
 * change of the cluster takes time.
 */
export const everyEndingStep: readonly string[] = ['hhheee', 'eeehhh', 'hhehee', 'eehehh', 'hehehe', 'eheheh'];

function interleavings(here: number, elsewhere: number): readonly string[] {
  if (here === 0 && elsewhere === 0) return [''];
  return [
    ...(here > 0 ? interleavings(here - 1, elsewhere).map((rest) => `h${rest}`) : []),
    ...(elsewhere > 0 ? interleavings(here, elsewhere - 1).map((rest) => `e${rest}`) : []),
  ];
}

/**
 * A Service for each of some orders, all in one cluster: each round moves one endpoint of every Service a step on, and then each is looked
 * at from outside (policy Local), from a pod (policy Cluster), and by its health check. Judged by `matrix-rules.ts`.
 */
export function endingScenarios(
  dataplane: DataplaneTraits,
  orders: readonly string[] = everyEndingStep,
): readonly Scenario[] {
  return ipFamilies.map((ipFamily) => endingScenario(ipFamily, dataplane, orders));
}

function endingScenario(ipFamily: IpFamily, dataplane: DataplaneTraits, orders: readonly string[]): Scenario {
  const plays = orders.map((order, index) => ({ order, service: serviceOf(order, index, ipFamily) }));
  const rounds = Array.from({ length: 2 * ending.length + 1 }, (_, round) => round);
  const steps: readonly UnnumberedStep[] = rounds.flatMap((round) => [
    ...plays.flatMap((play) => (round === 0 ? [] : [changeOf(play, round)])),
    ...plays.flatMap((play) => looksAt(play, round, dataplane)),
  ]);
  return {
    id: 'matrix-ending-orders',
    name: 'in whatever order an endpoint here and one elsewhere end, each moment has the traffic and the health that its endpoints say',
    why: 'KEP-1669: serving-terminating endpoints are the fallback, for the Cluster set and for the Local set on its own',
    ipFamily,
    dataplane,
    ...usualSetting,
    services: plays.map(({ service }) => service),
    endpoints: plays.flatMap((play) => endpointsAt(play, 0)),
    steps: steps.map((step, index) => ({ ...step, line: index + 1 })),
  };
}

type UnnumberedStep = ScenarioStep extends infer Step
  ? Step extends ScenarioStep
    ? Omit<Step, 'line'>
    : never
  : never;

/** One Service, and the order in which its endpoints end. */
interface Play {
  readonly order: string;
  readonly service: ScenarioService;
}

/** Condition of the endpoint of a side after a number of rounds; undefined: removed. */
function conditionAt({ order }: Play, turn: Turn, round: number): Condition | undefined {
  return ending[order.slice(0, round).split(turn).length - 1];
}

function endpointsAt(play: Play, round: number): readonly ScenarioEndpoint[] {
  return (['h', 'e'] as const).flatMap((turn) => {
    const is = conditionAt(play, turn, round);
    return is === undefined ? [] : [endpointOf(play, turn, is)];
  });
}

/** The endpoint keeps its address in all conditions. */
function endpointOf({ service }: Play, turn: Turn, is: Condition): ScenarioEndpoint {
  return endpointAt(inFamily(turn === 'h' ? '10.244.1.5' : '10.244.2.5', familyOf(service)), {
    service: service.name,
    node: turn === 'h' ? 'node1' : 'node2',
    is,
  });
}

function changeOf(play: Play, round: number): UnnumberedStep {
  const turn: Turn = play.order[round - 1] === 'h' ? 'h' : 'e';
  const is = conditionAt(play, turn, round);
  if (is !== undefined) return { kind: 'putEndpoint', endpoint: endpointOf(play, turn, is) };
  const { service, ip } = endpointOf(play, turn, 'stopped');
  return { kind: 'removeEndpoint', service, ip };
}

function looksAt(play: Play, round: number, dataplane: DataplaneTraits): readonly UnnumberedStep[] {
  const { service } = play;
  const endpoints = endpointsAt(play, round);
  const { status, localEndpoints } = healthAnswerOf(endpoints);
  const common = { endpoints, protocol: 'TCP', dataplane } as const;
  const flow = (question: MatrixQuestion, to: IpAddress): UnnumberedStep => ({
    kind: 'flow',
    flow: flowOf({ to, port: parsePort(80) }, question, answerOf(question)),
  });
  const clusterIp = service.clusterIP === 'None' ? [] : [service.clusterIP];
  return [
    ...service.loadBalancerIPs.map(({ ip }) =>
      flow({ ...common, frontend: 'loadBalancerIP', policy: 'Local', from: 'outside' }, ip),
    ),
    ...clusterIp.map((ip) => flow({ ...common, frontend: 'clusterIP', policy: 'Cluster', from: 'pod' }, ip)),
    {
      kind: 'healthCheck',
      check: { service: service.name, ipFamily: familyOf(service), status, localEndpoints },
    },
  ];
}

function familyOf({ clusterIP }: ScenarioService): IpFamily {
  return clusterIP.includes(':') ? 'IPv6' : 'IPv4';
}

function serviceOf(order: string, index: number, ipFamily: IpFamily): ScenarioService {
  const block = ipFamily === 'IPv4' ? 0 : 50;
  return {
    name: `matrix/ending-${order}-${ipFamily.slice(-2).toLowerCase()}`,
    type: 'LoadBalancer',
    ...plainService,
    clusterIP: inFamily(`10.96.30.${index + 1}`, ipFamily),
    ports: [{ name: 'http', port: parsePort(80), protocol: 'TCP', nodePort: parsePort(30_500 + block + index) }],
    externalTrafficPolicy: 'Local',
    loadBalancerIPs: [{ ip: inFamily(`198.51.100.${160 + index}`, ipFamily), ipMode: undefined }],
    healthCheckNodePort: parsePort(32_500 + block + index),
  };
}
