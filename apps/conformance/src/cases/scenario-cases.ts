import type { IpFamily, Protocol } from '@switchyard/core';
import {
  allScenarios,
  dataplaneNamed,
  type Scenario,
  type ScenarioAgent,
  type ScenarioFlow,
  type ScenarioEndpoint,
  type ScenarioService,
  flowText,
  healthStepText,
  isOfMatrix,
  type ScenarioStep,
  endingScenarios,
  matrixScenarios,
} from '@switchyard/scenarios';
import type { Ability, CatalogueOptions, ScenarioCase } from '../model/case.ts';

/** Every scenario file in every family it names, as this dataplane must do it. */
export function scenarioCases({
  dataplane,
  cell = 'dual',
}: Pick<CatalogueOptions, 'dataplane'> & Partial<CatalogueOptions>): readonly ScenarioCase[] {
  const smokeFamily: IpFamily = cell === 'ipv6' ? 'IPv6' : 'IPv4';
  const isSmoke = ({ id, ipFamily }: Scenario): boolean => smokeScenarios.has(id) && ipFamily === smokeFamily;
  return allScenarios(dataplaneNamed(dataplane)).map((scenario) =>
    scenarioCase(scenario, isSmoke(scenario) ? ['smoke'] : []),
  );
}

/** A scenario as a case of its own, outside of any batch. */
export function scenarioCase(scenario: Scenario, tags: readonly string[] = []): ScenarioCase {
  return caseOf(scenario, { id: scenarioCaseId(scenario), tags: ['scenario', ...tags], batch: undefined });
}

function caseOf(scenario: Scenario, { id, tags, batch }: Pick<ScenarioCase, 'id' | 'tags' | 'batch'>): ScenarioCase {
  return {
    kind: 'scenario',
    id,
    title: scenario.name,
    why: scenario.why,
    tags: [...tags, ...scenarioTags(scenario)],
    families: scenario.isDualStack ? 'dual' : scenario.ipFamily,
    needs: scenarioNeeds(scenario),
    notFor: scenario.runs.kinds.includes('packets') ? undefined : scenario.runs.because,
    scenario,
    batch,
  };
}

/** `scenario/etp-local/ipv4`; `scenario/dual-stack-endpoints/dual-ipv4` for both families with IPv4 as the first. */
export function scenarioCaseId({ id, ipFamily, isDualStack }: Scenario): string {
  return `scenario/${id}/${isDualStack ? 'dual-' : ''}${ipFamily.toLowerCase()}`;
}

export function scenarioNeeds(scenario: Scenario): readonly Ability[] {
  const { steps, agent } = scenario;
  const has = (kind: Scenario['steps'][number]['kind']): boolean => steps.some((step) => step.kind === kind);
  const needs: readonly (readonly [Ability, boolean])[] = [
    ['restartProxy', has('restartAgent')],
    ['configureProxy', isConfigured(agent)],
    ['sendFromOutside', flowsOf(scenario).some(({ from }) => from === 'outside')],
    ['changeNodes', has('nodeAddress') || has('putServiceCidr')],
    ['sctp', flowsOf(scenario).some(({ protocol }) => protocol === 'SCTP')],
  ];
  return needs.filter(([, isNeeded]) => isNeeded).map(([ability]) => ability);
}

/** Protocols and features by which `--tag` finds a scenario. */
export function scenarioTags(scenario: Scenario): readonly string[] {
  const services = servicesOf(scenario);
  const endpoints = endpointsOf(scenario);
  const flows = flowsOf(scenario);
  const features: readonly (readonly [string, boolean])[] = [
    ...(['TCP', 'UDP', 'SCTP'] as const).map((protocol) => [protocol.toLowerCase(), speaks(flows, protocol)] as const),
    ['node-port', services.some(({ ports }) => ports.some(({ nodePort }) => nodePort !== undefined))],
    ['external-ip', services.some(({ externalIPs }) => externalIPs.length > 0)],
    ['load-balancer', services.some(({ type }) => type === 'LoadBalancer')],
    ['etp-local', services.some(({ externalTrafficPolicy }) => externalTrafficPolicy === 'Local')],
    ['itp-local', services.some(({ internalTrafficPolicy }) => internalTrafficPolicy === 'Local')],
    ['source-ranges', services.some(({ loadBalancerSourceRanges }) => loadBalancerSourceRanges.length > 0)],
    ['affinity', services.some(({ sessionAffinityTimeoutSeconds }) => sessionAffinityTimeoutSeconds !== undefined)],
    ['terminating', endpoints.some(({ terminating }) => terminating === true)],
    ['topology', endpoints.some(({ zoneHints, nodeHints }) => zoneHints.length + nodeHints.length > 0)],
    ['hairpin', flows.some(({ fromEndpoint }) => fromEndpoint !== undefined)],
    ['health-check', scenario.steps.some(({ kind }) => kind === 'healthCheck')],
    ['restart', scenario.steps.some(({ kind }) => kind === 'restartAgent')],
    ['configuration', isConfigured(scenario.agent)],
    ['dual-stack', scenario.isDualStack],
  ];
  return features.filter(([, isThere]) => isThere).map(([tag]) => tag);
}

function speaks(flows: readonly ScenarioFlow[], protocol: Protocol): boolean {
  return flows.some((flow) => flow.protocol === protocol);
}

/** Whether the proxy must be started with something else than the pods' CIDR and open NodePorts. */
function isConfigured(agent: ScenarioAgent): boolean {
  const { detectLocal, masqueradeAll, terminatingFallback, nodePortAddresses, localhostNodePorts, routerIpMode } =
    agent;
  const isAsUsual = detectLocal.kind === 'clusterCIDR' && !masqueradeAll && terminatingFallback === 'on';
  return !isAsUsual || nodePortAddresses.length > 0 || !localhostNodePorts || routerIpMode;
}

export function flowsOf({ steps }: Pick<Scenario, 'steps'>): readonly ScenarioFlow[] {
  return steps.flatMap((step) => (step.kind === 'flow' ? [step.flow] : []));
}

/** Services that the cluster holds at first, and those that steps put. */
export function servicesOf({ services, steps }: Pick<Scenario, 'services' | 'steps'>): readonly ScenarioService[] {
  return [...services, ...steps.flatMap((step) => (step.kind === 'putService' ? [step.service] : []))];
}

/** Endpoints that the cluster holds at first, and those that steps put. */
export function endpointsOf({ endpoints, steps }: Pick<Scenario, 'endpoints' | 'steps'>): readonly ScenarioEndpoint[] {
  return [...endpoints, ...steps.flatMap((step) => (step.kind === 'putEndpoint' ? [step.endpoint] : []))];
}

/** A dozen scenario files that touch every feature in seconds; have the tag `smoke` in one family, IPv4 where the cell has it. */
export const smokeScenarios: ReadonlySet<string> = new Set([
  'cluster-ip',
  'dual-stack-endpoints',
  'etp-local',
  'external-ip',
  'hairpin',
  'itp-local',
  'load-balancer-ip-mode',
  'node-port',
  'sctp',
  'session-affinity',
  'source-ranges',
  'terminating-fallback-local',
  'udp-stale-flows',
]);

/**
 * The id of a step's check, stable and unique within its case. In scenario files `line 23`. In the matrix `outside/tcp`, where each
 * source and protocol occurs once, and `health`; in cases that change the cluster, `after 20 changes: ` and the flow. Undefined for a
 * step that only changes the cluster.
 */
export function checkIdOf(scenario: Scenario, step: ScenarioStep): string | undefined {
  if (!isLook(step)) return undefined;
  if (!isOfMatrix(scenario)) return `line ${step.line}`;
  if (scenario.steps.every(isLook)) {
    return step.kind === 'flow' ? `${step.flow.from}/${step.flow.protocol.toLowerCase()}` : 'health';
  }
  const changes = scenario.steps.filter((one) => one.line < step.line && !isLook(one)).length;
  return `after ${changes} changes: ${lookText(step)}`;
}

function isLook({ kind }: ScenarioStep): boolean {
  return kind === 'flow' || kind === 'healthCheck' || kind === 'restartAgent';
}

function lookText(step: ScenarioStep): string {
  if (step.kind === 'flow') return flowText(step.flow);
  return step.kind === 'healthCheck' ? healthStepText(step.check) : 'restart';
}

/** Policy by endpoint state by source class by protocol by family by frontend kind, all in one batch; and the orders in which endpoints end. */
export function matrixCases({ dataplane }: Pick<CatalogueOptions, 'dataplane'>): readonly ScenarioCase[] {
  const traits = dataplaneNamed(dataplane);
  const tags = ['matrix'];
  return [
    ...matrixScenarios(traits).map(({ frontend, policy, state, ipFamily, scenario }) =>
      caseOf(scenario, {
        id: `matrix/${frontend}/${policy}/${state}/${ipFamily.toLowerCase()}`,
        tags,
        batch: 'matrix',
      }),
    ),
    ...endingScenarios(traits).map((scenario) =>
      caseOf(scenario, { id: `matrix/ending-orders/${scenario.ipFamily.toLowerCase()}`, tags, batch: undefined }),
    ),
  ];
}
