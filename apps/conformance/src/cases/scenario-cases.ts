import type { IpFamily, Protocol } from '@switchyard/core';
import {
  allScenarios,
  dataplaneNamed,
  type Scenario,
  type ScenarioAgent,
  type ScenarioFlow,
} from '@switchyard/scenarios';
import type { Ability, CatalogueOptions, ScenarioCase } from '../model/case.ts';
import { endpointsOf, flowsOf, servicesOf } from './scenario-parts.ts';
import { smokeScenarios } from './smoke.ts';

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
  return {
    kind: 'scenario',
    id: scenarioCaseId(scenario),
    title: scenario.name,
    why: scenario.why,
    tags: ['scenario', ...tags, ...scenarioTags(scenario)],
    families: scenario.isDualStack ? 'dual' : scenario.ipFamily,
    needs: scenarioNeeds(scenario),
    notFor: scenario.runs.kinds.includes('packets') ? undefined : scenario.runs.because,
    scenario,
    batch: undefined,
  };
}

/** `scenario/etp-local/ipv4`; `scenario/dual-stack-endpoints/dual-ipv4` for both families with IPv4 as the first. */
export function scenarioCaseId({ id, ipFamily, isDualStack }: Scenario): string {
  return `scenario/${id}/${isDualStack ? 'dual-' : ''}${ipFamily.toLowerCase()}`;
}

/** Abilities that all steps of a scenario need. */
export function scenarioNeeds(scenario: Scenario): readonly Ability[] {
  const { steps, agent } = scenario;
  const has = (kind: Scenario['steps'][number]['kind']): boolean => steps.some((step) => step.kind === kind);
  const needs: readonly (readonly [Ability, boolean])[] = [
    ['controlProxy', has('restartAgent')],
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
