import { type Endpoint, HostError, type IpFamily, type ServiceForwarding, type TrafficPolicy } from '@switchyard/core';
import { type Element, elementId, endpointData, frontendId, hairpinId, slotId } from './elements.ts';
import { decisionClass, endpointSetId, hex, packHandle } from './handles.ts';
import { type FamilySuffix, setMapOf, suffixOf } from './names.ts';
import { renderSourceRanges } from './render-source-ranges.ts';
import { assignSlots, loadBalancingClass, maxEndpoints } from './slots.ts';

const policies: readonly TrafficPolicy[] = ['Cluster', 'Local'];

/** Which endpoint (`address . port`) stands in which slot, per policy. */
export type ServiceSlots = Readonly<Record<TrafficPolicy, readonly (string | undefined)[]>>;

/** The slots of a service that has none yet. */
export const noSlots: ServiceSlots = { Cluster: [], Local: [] };

/** What a service looks like in the kernel. */
export interface RenderedService {
  readonly elements: readonly Element[];
  readonly slots: ServiceSlots;
}

/** Where a service stands: its id, and the slots its endpoints have by now. */
export interface ServicePlace {
  readonly id: number;
  readonly slots: ServiceSlots;
}

/**
 * The elements of one service. Pure. Throws `HostError` for a service that the kernel cannot hold; the
 * others are not concerned.
 *
 * Which sets exist and what each frontend does follows from the decisions alone.
 */
export function renderService(service: ServiceForwarding, family: IpFamily, place: ServicePlace): RenderedService {
  const suffix = suffixOf(family);
  const used = policies.filter((policy) => isUsed(service, policy));
  const slots: Record<TrafficPolicy, readonly string[]> = { Cluster: [], Local: [] };
  const elements: Element[] = [];
  for (const policy of used) {
    const endpoints = service.endpoints[policy];
    if (endpoints.length > maxEndpoints) throw tooManyEndpoints(service, endpoints.length);
    slots[policy] = assignSlots(place.slots[policy], endpoints.map(endpointData));
    elements.push(...renderSet(slots[policy], { id: place.id, policy, suffix }));
  }
  for (const id of renderHairpin(service, used, suffix)) elements.push({ id, data: '' });
  for (const frontend of service.frontends) {
    const handle = packHandle(decisionClass(frontend.decisions), place.id);
    elements.push({ id: frontendId(frontend, service.protocol, suffix), data: hex(handle) });
  }
  elements.push(...renderSourceRanges(service, place.id, suffix));
  const clusterIps = service.frontends.filter((frontend) => frontend.kind === 'clusterIP');
  for (const { address } of clusterIps) elements.push({ id: elementId(`cluster-ips${suffix}`, address), data: '' });
  return { elements, slots };
}

function isUsed(service: ServiceForwarding, policy: TrafficPolicy): boolean {
  return service.frontends.some(({ decisions }) =>
    Object.values(decisions).some((decision) => decision.kind === 'forward' && decision.to === policy),
  );
}

interface SetPlace {
  readonly id: number;
  readonly policy: TrafficPolicy;
  readonly suffix: FamilySuffix;
}

function renderSet(slots: readonly string[], { id, policy, suffix }: SetPlace): Element[] {
  const setId = endpointSetId(id, policy);
  const elements = slots.map((data, slot) => ({ id: slotId(setId, slot, suffix), data }));
  const handle = packHandle(loadBalancingClass(slots.length), setId);
  elements.push({ id: elementId(`${setMapOf[policy]}${suffix}`, hex(id)), data: hex(handle) });
  return elements;
}

/**
 * A connection of an endpoint to itself passes the node it runs on, so local endpoints do. A frontend that
 * is no cluster IP can also be reached by a pod of another node without being masqueraded: then all.
 */
function renderHairpin(
  service: ServiceForwarding,
  used: readonly TrafficPolicy[],
  suffix: FamilySuffix,
): ReadonlySet<string> {
  const isReachedFromElsewhere = service.frontends.some(
    ({ kind, decisions }) => kind !== 'clusterIP' && decisions.pod.kind === 'forward' && !decisions.pod.masquerade,
  );
  const concerned = ({ isLocal }: Endpoint): boolean => isLocal || isReachedFromElsewhere;
  const endpoints = used.flatMap((policy) => service.endpoints[policy]).filter(concerned);
  return new Set(endpoints.map((endpoint) => hairpinId(endpoint, service.protocol, suffix)));
}

function tooManyEndpoints(service: ServiceForwarding, count: number): HostError {
  return new HostError(
    'nftables.too-many-endpoints',
    `cannot render ${service.key}: it has ${count} endpoints, one set holds ${maxEndpoints}; split the Service`,
  );
}
