import {
  HostError,
  type IpAddress,
  ipFamilyOf,
  type Millis,
  millis,
  seconds,
  systemClock,
  tryParseIp,
} from '@switchyard/core';
import { apiResources, type ObjectClient, type ObjectRef, type Service } from '@switchyard/core/kubernetes';
import type { Scenario } from '@switchyard/scenarios';
import { servicesOf } from '../cases/scenario-cases.ts';
import type { Caller } from './traffic-caller.ts';

/**
 * Where load-balancer IPs come from. `runner`: it writes the status of Services of a class that no controller serves. `controller`: a
 * controller of the cluster assigns them. `proxied`: it does, and with ipMode Proxy, so that nodes send all packets to the load balancer.
 * `nowhere`: no controller did.
 */
export type LoadBalancing = 'runner' | 'controller' | 'proxied' | 'nowhere';

/** Longest time until a controller assigns an address. */
export const longestAssignment: Millis = seconds(20);
const lookPause = millis(100);

/** Reason why Services have no load-balancer IPs. */
const unassigned = `no controller of this cluster gave a Service of type LoadBalancer an address within ${longestAssignment / 1000} s`;

/** Asks the cluster for a load balancer, and returns whether, and how, a controller assigned an address. */
export async function findController({ api, namespace }: Caller, signal: AbortSignal): Promise<LoadBalancing> {
  const ref = { namespace, name: 'balanced' };
  const spec = { type: 'LoadBalancer', ports: [{ port: 80 }] };
  await api.create(apiResources.services, { metadata: ref, spec }, signal);
  const assigned = await assignedAddresses(api, ref, signal);
  const { status } = await api.get(apiResources.services, ref, signal);
  await api.delete(apiResources.services, ref, {}, signal);
  if (assigned.length === 0) return 'nowhere';
  return status?.loadBalancer?.ingress?.some(({ ipMode }) => ipMode === 'Proxy') === true ? 'proxied' : 'controller';
}

/** Reason why no requests go through a load balancer of the cluster; undefined: they do. */
export function balancerObstacle(balancing: LoadBalancing, isInPod: boolean): string | undefined {
  if (balancing === 'runner') return "only with --load-balancer do requests go through the cluster's own load balancer";
  if (balancing === 'nowhere') return unassigned;
  return isInPod
    ? 'requests through a load balancer come from outside the cluster, and the runner is inside'
    : undefined;
}

/** Waits until a Service has load-balancer IPs. Empty: it has none in time. */
export async function assignedAddresses(
  api: ObjectClient,
  ref: ObjectRef,
  signal: AbortSignal,
): Promise<readonly IpAddress[]> {
  const end = systemClock.monotonic() + longestAssignment;
  for (;;) {
    const found = addressesOf(await api.get(apiResources.services, ref, signal));
    if (found.length > 0 || systemClock.monotonic() > end) return found;
    await systemClock.sleep(lookPause, signal);
  }
}

function addressesOf({ status }: Service): readonly IpAddress[] {
  return (status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => tryParseIp(ip ?? '') ?? []);
}

/** Pairs the planned load-balancer IPs of a Service with the assigned ones, by family. Throws `HostError` if one has no partner. */
export function pairAddresses(
  planned: readonly IpAddress[],
  assigned: readonly IpAddress[],
): readonly (readonly [IpAddress, IpAddress])[] {
  return planned.map((ip) => {
    const real = assigned.find((one) => ipFamilyOf(one) === ipFamilyOf(ip));
    if (real !== undefined) return [ip, real] as const;
    const got = assigned.join(', ') || 'none';
    throw new HostError('cluster.loadBalancer', `the controller assigned no ${ipFamilyOf(ip)} address: ${got}`);
  });
}

/** Reason why a controller cannot give the Services of a scenario their load-balancer IPs; undefined: it can, or need not. */
export function balancingObstacle(scenario: Scenario, balancing: LoadBalancing): string | undefined {
  const services = servicesOf(scenario).filter(({ loadBalancerIPs }) => loadBalancerIPs.length > 0);
  if (balancing === 'runner' || services.length === 0) return undefined;
  if (balancing === 'nowhere') return unassigned;
  const all = services.flatMap(({ loadBalancerIPs }) => loadBalancerIPs);
  if (all.some(({ ipMode }) => ipMode !== undefined)) return 'the controller chooses the ipMode of its addresses';
  const external = new Set(servicesOf(scenario).flatMap(({ externalIPs }) => externalIPs));
  const isChosen = all.some(({ ip }) => external.has(ip)) || !hasOwnAddresses(services);
  return isChosen ? 'the controller chooses which addresses a Service has' : undefined;
}

/** Whether each Service has one address of each family, which stays the same and is of no other Service. */
function hasOwnAddresses(services: Scenario['services']): boolean {
  const namesByIp = Map.groupBy(
    services.flatMap(({ name, loadBalancerIPs }) => loadBalancerIPs.map(({ ip }) => ({ name, ip }))),
    ({ ip }) => ip,
  );
  const addressesByName = Map.groupBy([...namesByIp.values()].flat(), ({ name }) => name);
  const isOwn = [...namesByIp.values()].every((all) => new Set(all.map(({ name }) => name)).size === 1);
  const isStable = [...addressesByName.values()].every((all) => {
    const ips = [...new Set(all.map(({ ip }) => ip))];
    return new Set(ips.map((ip) => ipFamilyOf(ip))).size === ips.length;
  });
  return isOwn && isStable;
}

/** Reason why a packet cannot be sent to a load-balancer IP of these Services. */
export function balancedFlowObstacle(
  to: IpAddress,
  services: Scenario['services'],
  balancing: LoadBalancing,
): string | undefined {
  const isBalanced = services.some(({ loadBalancerIPs }) => loadBalancerIPs.some(({ ip }) => ip === to));
  if (!isBalanced) return undefined;
  if (balancing === 'proxied')
    return 'the controller assigns addresses with ipMode Proxy, which the nodes do not handle';
  return balancing === 'nowhere' ? unassigned : undefined;
}
