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
type Side = 'h' | 'e';

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
 * Scenarios with one Service per order, all in one cluster. Each round advances one endpoint of every Service by a step, and then
 * checks each Service from outside (policy Local), from a pod (policy Cluster), and by its health check. The expectations are
 * those of `matrix-rules.ts`.
 */
export function endingScenarios(
  dataplane: DataplaneTraits,
  orders: readonly string[] = everyEndingStep,
): readonly Scenario[] {
  return ipFamilies.map((ipFamily) => endingScenario(ipFamily, dataplane, orders));
}

function endingScenario(ipFamily: IpFamily, dataplane: DataplaneTraits, orders: readonly string[]): Scenario {
  const cases = orders.map((order, index) => ({ order, service: serviceOf(order, index, ipFamily) }));
  const rounds = Array.from({ length: 2 * ending.length + 1 }, (_, round) => round);
  const steps: readonly UnnumberedStep[] = rounds.flatMap((round) => [
    ...cases.flatMap((one) => (round === 0 ? [] : [changeOf(one, round)])),
    ...cases.flatMap((one) => checksOf(one, round, dataplane)),
  ]);
  return {
    id: 'matrix-ending-orders',
    name: 'in whatever order an endpoint here and one elsewhere end, each moment has the traffic and the health that its endpoints say',
    why: 'KEP-1669: serving-terminating endpoints are the fallback, for the Cluster set and for the Local set on its own',
    ipFamily,
    dataplane,
    ...usualSetting,
    services: cases.map(({ service }) => service),
    endpoints: cases.flatMap((one) => endpointsAt(one, 0)),
    steps: steps.map((step, index) => ({ ...step, line: index + 1 })),
  };
}

type UnnumberedStep = ScenarioStep extends infer Step
  ? Step extends ScenarioStep
    ? Omit<Step, 'line'>
    : never
  : never;

/** One Service and the order in which its endpoints end. */
interface EndingCase {
  readonly order: string;
  readonly service: ScenarioService;
}

/** Condition of the endpoint of a side after a number of rounds; undefined: removed. */
function conditionAt({ order }: EndingCase, side: Side, round: number): Condition | undefined {
  return ending[order.slice(0, round).split(side).length - 1];
}

function endpointsAt(one: EndingCase, round: number): readonly ScenarioEndpoint[] {
  return (['h', 'e'] as const).flatMap((side) => {
    const is = conditionAt(one, side, round);
    return is === undefined ? [] : [endpointOf(one, side, is)];
  });
}

/** The endpoint keeps its address in all conditions. */
function endpointOf({ service }: EndingCase, side: Side, is: Condition): ScenarioEndpoint {
  return endpointAt(inFamily(side === 'h' ? '10.244.1.5' : '10.244.2.5', familyOf(service)), {
    service: service.name,
    node: side === 'h' ? 'node1' : 'node2',
    is,
  });
}

function changeOf(one: EndingCase, round: number): UnnumberedStep {
  const side: Side = one.order[round - 1] === 'h' ? 'h' : 'e';
  const is = conditionAt(one, side, round);
  if (is !== undefined) return { kind: 'putEndpoint', endpoint: endpointOf(one, side, is) };
  const { service, ip } = endpointOf(one, side, 'stopped');
  return { kind: 'removeEndpoint', service, ip };
}

function checksOf(one: EndingCase, round: number, dataplane: DataplaneTraits): readonly UnnumberedStep[] {
  const { service } = one;
  const endpoints = endpointsAt(one, round);
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
