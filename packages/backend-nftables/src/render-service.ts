import type { Endpoint, ServiceForwarding, TrafficPolicy } from '@switchyard/core';
import type { ClassChain } from './class-chains.ts';
import type { ClassPool } from './class-pool.ts';
import { type Addition, elementId, type ElementId, endpointData, frontendId, hairpinId, slotId } from './elements.ts';
import { endpointSetId, frontendClass, hex, packHandle } from './handles.ts';
import { type FamilySuffix, setMapOf } from './names.ts';
import { isUsed, type PlacedService, policies, slotsOf } from './place-service.ts';
import { renderAffinity } from './render-affinity.ts';
import { renderSourceRanges } from './render-source-ranges.ts';

/** What rendering depends on beside the service; the same for all services of a family. */
export interface RenderContext {
  readonly suffix: FamilySuffix;
  /** Sets up to this size have one slot per endpoint. */
  readonly exactLimit: number;
  /** Whether clients can keep their endpoint. */
  readonly hasAffinity: boolean;
  readonly classes: ClassPool;
}

/**
 * The elements of one service, as the changes that add them. No two have the same id.
 *
 * Which sets exist and what each frontend does follows from the decisions alone.
 */
export function renderService(placed: PlacedService, context: RenderContext): Addition[] {
  return renderFixed(placed, context, renderSlots(placed, context));
}

/** The endpoints of a service, each slot an element; `renderAffinity` says what they are with session affinity. */
export function renderSlots(placed: PlacedService, context: RenderContext): Addition[] {
  const elements: Addition[] = [];
  if (placed.affinity !== undefined) return renderAffinity(placed, context, elements);
  for (const policy of policies) {
    const setId = endpointSetId(placed.id, policy);
    const slots = slotsOf(placed, policy, context.exactLimit);
    for (let slot = 0; slot < slots.length; slot++) {
      // `slot` is below the length.
      elements.push(add(slotId(setId, slot, context.suffix), endpointData(slots[slot] as Endpoint)));
    }
  }
  return elements;
}

/** Appends to `elements` those of a service that are not slots; there are few, however many endpoints it has. */
export function renderFixed(placed: PlacedService, context: RenderContext, elements: Addition[]): Addition[] {
  const { service, id } = placed;
  const { suffix } = context;
  for (const policy of policies) {
    const count = slotsOf(placed, policy, context.exactLimit).length;
    if (count === 0) continue;
    const { affinity } = placed;
    const chain: ClassChain =
      affinity === undefined
        ? { kind: 'lb', slots: count }
        : { kind: 'affinity', slots: count, timeoutSeconds: affinity.timeoutSeconds };
    elements.push(renderSet({ id, policy, chain }, context));
  }
  renderHairpin(service, suffix, elements);
  for (const frontend of service.frontends) {
    const handle = packHandle(frontendClass(frontend), id);
    elements.push(add(frontendId(frontend, service.protocol, suffix), hex(handle)));
  }
  renderSourceRanges(service, suffix, elements);
  for (const { kind, address } of service.frontends) {
    if (kind === 'clusterIP') elements.push(add(elementId(`cluster-ips${suffix}`, address), ''));
  }
  return elements;
}

function add(id: ElementId, data: string): Addition {
  return { kind: 'add', id, data };
}

interface EndpointSet {
  readonly id: number;
  readonly policy: TrafficPolicy;
  readonly chain: ClassChain;
}

function renderSet({ id, policy, chain }: EndpointSet, { suffix, classes }: RenderContext): Addition {
  const handle = packHandle(classes.classOf(chain), endpointSetId(id, policy));
  return add(elementId(`${setMapOf[policy]}${suffix}`, hex(id)), hex(handle));
}

/**
 * A connection of an endpoint to itself passes the node it runs on, so local endpoints do. A frontend that
 * is no cluster IP can also be reached by a pod of another node without being masqueraded: then all.
 */
function renderHairpin(service: ServiceForwarding, suffix: FamilySuffix, elements: Addition[]): void {
  const isReachedFromElsewhere = service.frontends.some(
    ({ kind, decisions }) => kind !== 'clusterIP' && decisions.pod.kind === 'forward' && !decisions.pod.masquerade,
  );
  let ids: Set<ElementId> | undefined;
  for (const policy of policies) {
    if (!isUsed(service, policy)) continue;
    for (const endpoint of service.endpoints[policy]) {
      if (!endpoint.isLocal && !isReachedFromElsewhere) continue;
      ids ??= new Set();
      ids.add(hairpinId(endpoint, service.protocol, suffix));
    }
  }
  for (const id of ids ?? []) elements.push(add(id, ''));
}
