import { type IpAddress, ipFamilyOf } from '@switchyard/core';
import { nodeAddresses } from '@switchyard/scenarios';
import type { Scenario, ScenarioFlow, ScenarioService, ScenarioStep } from '@switchyard/scenarios';
import { balancedFlowObstacle, balancingObstacle, type LoadBalancing } from './load-balancing.ts';
import { endpointsOf, flowsOf, servicesOf } from '../cases/scenario-cases.ts';

/** Reason why the proxy is not restarted. */
export const onlyDisruptive = 'the proxy is only restarted with --disruptive';

/** Reason why a cluster cannot do a step of a scenario; undefined: it can. */
export function stepObstacleOnCluster(
  scenario: Scenario,
  step: ScenarioStep,
  { isDisruptive, balancing }: Pick<ClusterTraits, 'isDisruptive' | 'balancing'>,
): string | undefined {
  switch (step.kind) {
    case 'flow':
      return (
        flowObstacle(scenario, step.flow) ??
        balancedFlowObstacle(step.flow.to, servicesOf(scenario), balancing) ??
        affinityObstacle(scenario, step.flow)
      );
    case 'restartAgent':
      return isDisruptive ? undefined : onlyDisruptive;
    default:
      return undefined;
  }
}

/** Differences between clusters that decide which cases run. */
export interface ClusterTraits {
  /** The node under test has a zone. */
  readonly hasZones: boolean;
  /** The proxy's pods may be restarted. */
  readonly isDisruptive: boolean;
  readonly balancing: LoadBalancing;
  /** No admission plug-in refuses `spec.externalIPs`. */
  readonly hasExternalIps: boolean;
}

/** Reason why a cluster cannot run a scenario at all; undefined: it can. */
export function scenarioObstacle(scenario: Scenario, cluster: ClusterTraits): string | undefined {
  const services = servicesOf(scenario);
  const endpoints = endpointsOf(scenario);
  if (scenario.objects.length > 0) return 'its EndpointSlices are written for the addresses of the lab';
  if (endpoints.some(({ ip }) => isNodeAddress(ip))) return "it has endpoints on the nodes' own addresses and ports";
  const external = services.flatMap((one) => [...one.externalIPs, ...one.loadBalancerIPs.map(({ ip }) => ip)]);
  if (external.some(isNodeAddress)) return 'it makes an address of the node an external one';
  if (services.some(({ externalIPs }) => externalIPs.length > 0) && !cluster.hasExternalIps) {
    return 'the API server refuses external IPs';
  }
  if (services.some(isRefused)) return 'the API server refuses such a Service; the lab writes it past the rules';
  if (endpoints.some(({ zoneHints }) => zoneHints.length > 0) && !cluster.hasZones) {
    return 'the node under test has no label topology.kubernetes.io/zone';
  }
  const unbalanced = balancingObstacle(scenario, cluster.balancing);
  if (unbalanced !== undefined) return unbalanced;
  const perNode = Map.groupBy(new Set(endpoints.map(({ ip, node }) => `${node} ${ip}`)), (key) => key.split(' ')[0]);
  const most = Math.max(0, ...[...perNode.values()].map((all) => all.length));
  return most > mostPods ? `it needs ${most} pods on one node; ${mostPods} are the limit` : undefined;
}

/** Pods are made as scenarios need them, and kept until the end of the run. */
const mostPods = 12;

function flowObstacle(scenario: Scenario, flow: ScenarioFlow): string | undefined {
  const { from, to, port, protocol, isFromItself } = flow;
  const { node1 } = nodeAddresses[ipFamilyOf(to)];
  if (protocol === 'SCTP') return 'pods without rights cannot send SCTP';
  if (isFromItself) return 'the node would need the address';
  if (to === '127.0.0.1' || to === '::1') return "what answers on loopback depends on the proxy's flags";
  if (from === 'outside' && to !== node1) return "from outside only the node's own address can be reached";
  if (to === node1) {
    const isKnown = servicesOf(scenario).some(({ ports }) => ports.some(({ nodePort }) => nodePort === port));
    return isKnown ? undefined : `whose port ${port} of the node is cannot be known`;
  }
  if (isNodeAddress(to)) return "only the first address of the node under test is known to be its proxy's";
  // Either the API server has allocated it by now, or another Service has it.
  const had = servicesBefore(scenario, flow).flatMap(addressesOf);
  return isClusterIp(to) && !had.includes(to) ? 'whose cluster IP that is cannot be known' : undefined;
}

/** A client with an expected endpoint must have reached it before. */
function affinityObstacle(scenario: Scenario, flow: ScenarioFlow): string | undefined {
  if (flow.kept === undefined) return undefined;
  const isSame = ({ from, fromEndpoint }: ScenarioFlow): boolean =>
    from === flow.from && fromEndpoint === flow.fromEndpoint;
  const flows = flowsOf(scenario);
  const before = flows.slice(0, flows.indexOf(flow)).filter(isSame);
  const isLost = before.some((one) => flowObstacle(scenario, one) !== undefined);
  return isLost ? 'its client would have become known by a step that cannot be done' : undefined;
}

/** Addresses of a Service that a cluster can reach. */
function addressesOf(service: ScenarioService): readonly IpAddress[] {
  const { type, clusterIP, otherClusterIP, externalIPs, loadBalancerIPs } = service;
  const own = type === 'ExternalName' || clusterIP === 'None' ? [] : [clusterIP];
  const other = otherClusterIP === undefined ? [] : [otherClusterIP];
  return [...own, ...other, ...externalIPs, ...loadBalancerIPs.map(({ ip }) => ip)];
}

/** Whether the Service has a policy, or addresses in its status, that belong to another type. */
function isRefused(service: ScenarioService): boolean {
  const { type, externalIPs, externalTrafficPolicy, loadBalancerIPs, healthCheckNodePort } = service;
  const isExternal = type === 'NodePort' || type === 'LoadBalancer';
  if (externalTrafficPolicy === 'Local' && !isExternal && externalIPs.length === 0) return true;
  return type !== 'LoadBalancer' && (loadBalancerIPs.length > 0 || healthCheckNodePort !== undefined);
}

function isNodeAddress(address: IpAddress): boolean {
  return /^172\.18\.0\.\d+$|^fd00:172:18::/.test(address);
}

function isClusterIp(address: IpAddress): boolean {
  return /^10\.96\.|^fd00:10:96::/.test(address);
}

function servicesBefore({ services, steps }: Scenario, flow: ScenarioFlow): readonly ScenarioService[] {
  const end = steps.findIndex((step) => step.kind === 'flow' && step.flow === flow);
  return servicesOf({ services, steps: steps.slice(0, end) });
}
