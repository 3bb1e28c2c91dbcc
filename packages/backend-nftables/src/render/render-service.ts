import type { Endpoint, ServiceForwarding, TrafficPolicy } from '@switchyard/core';
import type { ClassChain, ClassNumbers } from './class-chains.ts';
import {
  type Addition,
  type Change,
  type Element,
  elementId,
  type ElementId,
  endpointData,
  endpointSetId,
  frontendClass,
  frontendId,
  frontendKey,
  hairpinId,
  hex,
  packHandle,
  slotId,
} from './elements.ts';
import { type FamilySuffix, setMapOf } from './names.ts';
import { isUsed, type PlacedService, policies, slotsOf } from './place-service.ts';
import { withoutCovered } from './without-covered.ts';
import type { AffinityNumbers } from './affinity-slots.ts';

/** Input of rendering besides the service; the same for all services of a family. */
export interface RenderContext {
  readonly suffix: FamilySuffix;
  readonly exactLimit: number;
  readonly hasAffinity: boolean;
  readonly classes: ClassNumbers;
}

/** The elements of one service, as the changes that add them. No two have the same id. Decisions alone say which sets exist. */
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

/** Of local endpoints; of all where pods of other nodes reach a frontend without being masqueraded. */
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

/** The changes from one version of a service to the next; both have one id. Undefined: not in the kernel. */
export function diffPlaced(
  before: PlacedService | undefined,
  after: PlacedService | undefined,
  context: RenderContext,
): Change[] {
  if (before === undefined) return after === undefined ? [] : renderService(after, context);
  if (after === undefined) return diffElements(renderService(before, context), []);
  const isPlain = before.affinity === undefined && after.affinity === undefined;
  const changes = isPlain
    ? diffSlots(before, after, context)
    : diffElements(renderSlots(before, context), renderSlots(after, context));
  appendDifference(renderFixed(before, context, []), renderFixed(after, context, []), changes);
  return changes;
}

/** The changes from existing to wanted elements. A changed value is a delete and an add of one key. */
export function diffElements(before: readonly Element[], wanted: readonly Addition[]): Change[] {
  const changes: Change[] = [];
  appendDifference(before, wanted, changes);
  return changes;
}

function appendDifference(before: readonly Element[], wanted: readonly Addition[], changes: Change[]): void {
  const had = new Map<string, string>();
  for (const { id, data } of before) had.set(id, data);
  for (const addition of wanted) {
    const data = had.get(addition.id);
    had.delete(addition.id);
    if (data === addition.data) continue;
    if (data !== undefined) changes.push({ kind: 'delete', id: addition.id });
    changes.push(addition);
  }
  for (const id of had.keys()) changes.push({ kind: 'delete', id });
}

/** Slots are compared in place: a set may have thousands, of which a change touches a few. */
function diffSlots(before: PlacedService, after: PlacedService, { suffix, exactLimit }: RenderContext): Change[] {
  const changes: Change[] = [];
  for (const policy of policies) {
    const [had, wanted] = [slotsOf(before, policy, exactLimit), slotsOf(after, policy, exactLimit)];
    const setId = endpointSetId(after.id, policy);
    for (let slot = 0; slot < had.length || slot < wanted.length; slot++) {
      const [old, now] = [had[slot], wanted[slot]];
      if (isSamePlace(old, now)) continue;
      const id = slotId(setId, slot, suffix);
      if (old !== undefined) changes.push({ kind: 'delete', id });
      if (now !== undefined) changes.push({ kind: 'add', id, data: endpointData(now) });
    }
  }
  return changes;
}

function isSamePlace(a: Endpoint | undefined, b: Endpoint | undefined): boolean {
  return a === b || (a?.address === b?.address && a?.port === b?.port);
}

/** Sources of restricted frontends, one element per range. The handle says "restricted", so an empty list admits none. */
export function renderSourceRanges(service: ServiceForwarding, suffix: FamilySuffix, elements: Addition[]): void {
  for (const frontend of service.frontends) {
    if (frontend.allowedSources === 'any') continue;
    const place = frontendKey(frontend, service.protocol);
    for (const cidr of withoutCovered(frontend.allowedSources)) {
      elements.push({ kind: 'add', id: elementId(`fw-allow${suffix}`, `${place} . ${cidr}`), data: '' });
    }
  }
}

/**
 * The endpoints of a service with session affinity, in the place of its slots: `aff-slots` leads from set and place to
 * an endpoint's number, which is what a client is pinned to; `aff-endpoints` leads from there to the endpoint. Taking the
 * latter away is all that frees the clients of an endpoint. Appends nothing for a service without affinity.
 */
export function renderAffinity(placed: PlacedService, context: RenderContext, elements: Addition[]): Addition[] {
  if (placed.affinity === undefined) return elements;
  for (const policy of policies) {
    const numbers = placed.affinity.numbers[policy];
    if (numbers !== undefined) renderAffinitySet(placed, { policy, numbers, ...context }, elements);
  }
  return elements;
}

interface AffinitySet extends Pick<RenderContext, 'suffix' | 'exactLimit'> {
  readonly policy: TrafficPolicy;
  readonly numbers: AffinityNumbers;
}

function renderAffinitySet(
  placed: PlacedService,
  { policy, numbers, suffix, exactLimit }: AffinitySet,
  elements: Addition[],
): void {
  const setId = endpointSetId(placed.id, policy);
  const pinOf = (data: string): string => hex(packHandle(numbers.byEndpoint.get(data) ?? 0, setId));
  for (const data of numbers.byEndpoint.keys()) {
    elements.push({ kind: 'add', id: elementId(`aff-endpoints${suffix}`, pinOf(data)), data });
  }
  slotsOf(placed, policy, exactLimit).forEach((endpoint, place) => {
    const id = elementId(`aff-slots${suffix}`, `${hex(setId)} . ${place}`);
    elements.push({ kind: 'add', id, data: pinOf(endpointData(endpoint)) });
  });
}
