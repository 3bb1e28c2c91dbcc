import { type Port, ipFamilyOf, type ServiceRecord, tryParseIp } from '@switchyard/core';
import { withFastDrain } from '@switchyard/loss';
import { isOurs, type LoadBalancerService } from '../cluster/cluster-objects.ts';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import { parseAnnotations } from './annotations.ts';
import type { AddressGrant } from './ip-pool.ts';
import { familyNodes, type FamilyNodes } from './node-targets.ts';
import { planPorts } from './plan-ports.ts';
import type { ExcludedNode, Problem } from './problem.ts';
import type { PlanContext, ServicePlan } from './service-plan.ts';
import { isFastDrained, type ServiceSettings } from './settings.ts';

/** Plans one Service: its load balancer, and the problems to report. */
export function planService(service: LoadBalancerService, context: PlanContext): ServicePlan {
  const { record, annotations } = service;
  const grant = context.grantOf(record.key);
  if (!isOurs(service) || grant === undefined) {
    return { service, planned: { status: 'remove' }, problems: [], excludedNodes: [] };
  }
  const { settings: asked, problems: wrong } = parseAnnotations(annotations, context.defaults);
  const settings = asked ?? context.lastSettingsOf(record.key);
  const checkPort = settings === undefined ? undefined : checkPortOf(record, settings);
  const problems: Problem[] = [...wrong, ...addressProblems(service, grant)];
  if (isUncheckable(record)) problems.push({ kind: 'noHealthCheckNodePort' });
  const families = grant.addresses.map((address) => familyNodes(context.nodes.values(), ipFamilyOf(address)));
  const excludedNodes = allExcluded(families);
  if (settings === undefined || checkPort === undefined) {
    return { service, planned: { status: 'keep' }, problems, excludedNodes };
  }
  const slices = context.slices.slicesOf(record.key);
  const { ports, routes, problems: portProblems } = planPorts({ record, grant, settings, checkPort, families, slices });
  problems.push(...familiesWithoutNodes(families), ...portProblems);
  if (context.defaults.isPublished) problems.push(...unpublished(settings, ports));
  if (ports.length === 0) return { service, planned: { status: 'remove' }, problems, excludedNodes };
  const spec: LoadBalancerSpec = {
    id: grant.id,
    addresses: grant.addresses,
    path: settings.path,
    ports,
    sourceRanges: [...new Set(record.loadBalancerSourceRanges)].sort(),
    sessionAffinity: record.sessionAffinity,
    proxyProtocol: settings.proxyProtocol,
    isWeighted: isWeighted(record, settings),
    profile: isFastDrained(record, settings) ? withFastDrain(settings.profile) : settings.profile,
    routes,
  };
  return { service, planned: { status: 'run', spec, settings }, problems, excludedNodes };
}

/** The header counts the endpoints of a node; endpoints that are targets themselves must not be weighed by it once more. */
function isWeighted({ externalTrafficPolicy, ports }: ServiceRecord, { path }: ServiceSettings): boolean {
  const goesToNodes = path === 'transparent' || ports.every(({ nodePort }) => nodePort !== undefined);
  return externalTrafficPolicy === 'Local' && goesToNodes;
}

function isUncheckable({ externalTrafficPolicy, healthCheckNodePort }: ServiceRecord): boolean {
  return externalTrafficPolicy === 'Local' && healthCheckNodePort === undefined;
}

/** Port of the health checks. With `Local` it is the Service's own, which shows the nodes with endpoints; undefined if it is missing. */
export function checkPortOf(record: ServiceRecord, { profile }: ServiceSettings): Port | undefined {
  return record.externalTrafficPolicy === 'Local' ? record.healthCheckNodePort : profile.clusterPort;
}

function addressProblems({ requestedIp }: LoadBalancerService, { refused, missing }: AddressGrant): readonly Problem[] {
  const isMalformed = requestedIp !== undefined && tryParseIp(requestedIp) === undefined;
  const why = isMalformed ? ({ reason: 'malformed' } as const) : refused;
  return [
    ...(requestedIp === undefined || why === undefined
      ? []
      : [{ kind: 'requestedIp', requested: requestedIp, why } as const]),
    ...missing.map((one) => ({ kind: 'noAddress', ...one }) as const),
  ];
}

function familiesWithoutNodes(families: readonly FamilyNodes[]): readonly Problem[] {
  return families
    .filter(({ usable }) => usable.length === 0)
    .map(({ ipFamily, excluded }) => ({ kind: 'noNodes', ipFamily, excluded }));
}

/** Ports that an engine cannot publish, see `publishablePorts` of the docker runtime. */
function unpublished({ path }: ServiceSettings, ports: LoadBalancerSpec['ports']): readonly Problem[] {
  if (path === 'transparent') return [{ kind: 'notPublished', why: 'transparent' }];
  return ports.some(({ protocol }) => protocol === 'SCTP') ? [{ kind: 'notPublished', why: 'sctp' }] : [];
}

/** Each once: a Node that is left out in both families for the same reason, once. */
function allExcluded(families: readonly FamilyNodes[]): readonly ExcludedNode[] {
  const byText = new Map(families.flatMap(({ excluded }) => excluded).map((one) => [JSON.stringify(one), one]));
  return [...byText.values()].sort((a, b) => (a.node < b.node ? -1 : a.node > b.node ? 1 : 0));
}
