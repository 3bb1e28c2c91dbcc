import {
  type Clock,
  type ForwardingTable,
  HostError,
  type IpFamily,
  millis,
  type ServicePortKey,
} from '@switchyard/core';
import { type AffinityNumbers, noNumbers, recoverNumbers } from '../render/affinity-slots.ts';
import {
  type Element,
  type ElementId,
  endpointData,
  endpointSetId,
  frontendId,
  frontendKey,
  handleClass,
  handleId,
  isShared,
  slotId,
  splitElementId,
} from '../render/elements.ts';
import {
  dropSets,
  type ElementObject,
  elementObjects,
  type FamilySuffix,
  intervalObjects,
  type ObjectName,
  suffixOf,
  type TableName,
} from '../render/names.ts';
import {
  type PlacedService,
  policies,
  type PreviousNumbers,
  type PreviousSlots,
  slotsOf,
  slotsOfClass,
} from '../render/place-service.ts';
import { renderAffinity, type RenderContext, renderFixed } from '../render/render-service.ts';
import type { SharedClaims } from '../render/shared-claims.ts';
import type { KernelObject, NftTransport, SlotCounts } from './transport.ts';

/** Kernel content of one family. `findService` takes a service's elements out; what remains is stale. */
export class KernelState {
  /** Everything but slots. */
  readonly elements: Map<ElementId, string> = new Map();
  /** Content of the slots by endpoint set. */
  readonly slots: Map<number, (string | undefined)[]> = new Map();
  /** Allowed sources by the frontend they are of, as `frontendKey` has it. */
  readonly ranges: Map<string, ElementId[]> = new Map();
  readonly settings: Map<ObjectName, readonly string[]> = new Map();
  /** Endpoint sets with session affinity. */
  readonly affinity: AffinityState = new AffinityState();
  /** Service ids for which something was refused, by services that may be gone. */
  readonly countedIds: Set<number> = new Set();

  /** Returns the number of new elements. */
  add(elements: readonly Element[]): number {
    const before = this.elements.size;
    let slots = 0;
    for (const { id, data } of elements) {
      if (id.startsWith('endpoints')) slots += this.#addSlot(id, data) ? 1 : 0;
      else this.elements.set(id, data);
      if (id.startsWith('aff-')) this.affinity.add(id, data);
      else if (id.startsWith('fw-allow')) this.#addRange(id);
    }
    return this.elements.size - before + slots;
  }

  /** The slots of a service's sets. Remembers them: they are still returned after `findService`. */
  previousSlots(serviceId: number): PreviousSlots {
    const slots = new Map(policies.map((policy) => [policy, this.#rowOf(endpointSetId(serviceId, policy))]));
    return (policy) => slots.get(policy) ?? [];
  }

  /** The numbers that endpoints of a service have where clients keep theirs. */
  previousNumbers(serviceId: number): PreviousNumbers {
    const numbers = new Map(
      policies.map((policy) => [policy, this.affinity.numbers(endpointSetId(serviceId, policy))]),
    );
    return (policy) => numbers.get(policy) ?? noNumbers;
  }

  #rowOf(set: number): readonly (string | undefined)[] {
    return this.slots.get(set) ?? this.affinity.row(set);
  }

  #addRange(id: ElementId): void {
    const place = id.slice(id.indexOf(' ') + 1, id.lastIndexOf(' . '));
    const found = this.ranges.get(place);
    if (found === undefined) this.ranges.set(place, [id]);
    else found.push(id);
  }

  #addSlot(id: ElementId, data: string): boolean {
    // `endpoints4 0x2 . 0`
    const dot = id.indexOf(' . ');
    const set = Number(id.slice(id.indexOf(' ') + 1, dot));
    const slot = Number(id.slice(dot + 3));
    const slots = this.slots.get(set);
    if (slots === undefined) this.slots.set(set, slot === 0 ? [data] : withSlot([], slot, data));
    else if (slots[slot] === undefined) withSlot(slots, slot, data);
    else return false;
    return true;
  }
}

export interface KernelToRead {
  readonly transport: NftTransport;
  readonly table: TableName;
  readonly family: IpFamily;
  readonly clock: Clock;
}

/** Reads one family of our table. Missing objects count as empty; the next write reports them. */
export async function readKernel(from: KernelToRead, signal: AbortSignal): Promise<KernelState> {
  const { transport, table, family } = from;
  const suffix = suffixOf(family);
  const kernel = new KernelState();
  for (const object of elementObjects) {
    if (object !== 'endpoints') await readObject({ ...from, object: { table, object, suffix } }, kernel, signal);
  }
  await readEndpoints({ ...from, object: { table, object: 'endpoints', suffix } }, kernel, signal);
  for (const object of intervalObjects) {
    const read = await transport.readIntervals({ table, object, suffix }, signal);
    kernel.settings.set(`${object}${suffix}`, read ?? []);
  }
  for (const object of dropSets) {
    const read = await transport.readCounters({ table, object, suffix }, signal);
    for (const key of read?.keys() ?? []) kernel.countedIds.add(Number(key));
  }
  return kernel;
}

/** Reads of one object until it is read without a double, and the wait between two of them. */
const maxReads = 20;
const readGap = millis(5);

interface ObjectToRead<Name = ElementObject> extends KernelToRead {
  readonly object: KernelObject<Name>;
}

/** Up to this number of slots a list takes the kernel less time than their keys. */
const listedSlots = 65_536;

/** Reads all slots. Those of a large table are read by their keys if sets lead to all of them, otherwise as a list. */
async function readEndpoints(from: ObjectToRead<'endpoints'>, kernel: KernelState, signal: AbortSignal): Promise<void> {
  const sets = slotCounts(kernel);
  const isLarge = sets.values().reduce((sum, slots) => sum + slots, 0) > listedSlots;
  const slots = isLarge ? await from.transport.readSlots(from.object, sets, signal) : undefined;
  if (slots === undefined) await readObject(from, kernel, signal);
  else kernel.add(slots);
}

/** The sets that services lead to, without those of session affinity, which have no slots. */
function slotCounts({ elements }: KernelState): SlotCounts {
  const counts = new Map<number, number>();
  for (const [id, data] of elements) {
    if (!id.startsWith('to-')) continue;
    const slots = slotsOfClass(handleClass(Number(data)));
    if (slots !== undefined) counts.set(handleId(Number(data)), slots);
  }
  return counts;
}

/** While a hash table grows, the kernel lists some elements twice and as many not at all. A list without doubles is complete. */
async function readObject(
  { transport, clock, object }: ObjectToRead,
  kernel: KernelState,
  signal: AbortSignal,
): Promise<void> {
  const elements = (await transport.readElements(object, signal)) ?? [];
  if (kernel.add(elements) === elements.length) return;
  for (let reads = 1; reads < maxReads; reads++) {
    await clock.sleep(readGap, signal);
    const again = (await transport.readElements(object, signal)) ?? [];
    kernel.add(again);
    if (new Set(again.map(({ id }) => id)).size === again.length) return;
  }
  const name = `inet ${object.table} ${object.object}${object.suffix}`;
  throw new HostError('nftables.doubles', `cannot read ${name}: ${maxReads} lists had doubles; will be tried again`);
}

/** Service ids that a new process recovers from the kernel. */
export interface RecoveredIds {
  readonly ids: ReadonlyMap<ServicePortKey, number>;
  /** All service ids in the kernel, including those of removed services. */
  readonly usedIds: ReadonlySet<number>;
}

/** Ids recorded before the kernel was read. */
export interface Memory {
  known(key: ServicePortKey): number | undefined;
  readonly suffix: FamilySuffix;
}

/** Finds each service's id behind its frontends. Of two services with one id the first keeps it; one without frontends has its recorded id. */
export function recoverIds(
  kernel: KernelState,
  services: ForwardingTable['services'],
  { known, suffix }: Memory,
): RecoveredIds {
  const ids = new Map<ServicePortKey, number>();
  const taken = new Set<number>();
  const take = (key: ServicePortKey, id: number | undefined): boolean => {
    if (id === undefined || taken.has(id)) return false;
    taken.add(id);
    ids.set(key, id);
    return true;
  };
  for (const { key, frontends, protocol } of services.values()) {
    for (const frontend of frontends) {
      const handle = kernel.elements.get(frontendId(frontend, protocol, suffix));
      if (handle !== undefined && take(key, handleId(Number(handle)))) break;
    }
  }
  if (ids.size < services.size) {
    for (const key of services.keys()) if (!ids.has(key)) take(key, known(key));
  }
  addUsedIds(kernel, taken);
  return { ids, usedIds: taken };
}

function addUsedIds(kernel: KernelState, ids: Set<number>): void {
  for (const set of kernel.slots.keys()) ids.add(Math.floor(set / 2));
  for (const set of kernel.affinity.sets()) ids.add(Math.floor(set / 2));
  for (const [id, data] of kernel.elements) {
    const { object, key } = splitElementId(id);
    if (object.startsWith('frontends') || object.startsWith('nodeports')) ids.add(handleId(Number(data)));
    else if (object.startsWith('to-')) ids.add(Number(key));
  }
}

/** Elements of one service in the kernel. */
export interface FoundService {
  /** The elements are those wanted. */
  readonly isSame: boolean;
  /** Without slots when it is the same. */
  readonly elements: readonly Element[];
}

/** Removes a service's elements from the state read from the kernel, and returns them. Shared elements stay in the state. */
export function findService(kernel: KernelState, wanted: PlacedService, context: RenderContext): FoundService {
  const elements = renderFixed(wanted, context, renderAffinity(wanted, context, []));
  const hasSlots = policies.every((policy) => isSameSet(kernel, wanted, policy, context));
  const stale = staleRanges(kernel, wanted.service, elements);
  const isSame = hasSlots && stale.length === 0 && elements.every(({ id, data }) => kernel.elements.get(id) === data);
  const found: Element[] = isSame ? elements : [];
  for (const { id } of elements) {
    const data = kernel.elements.get(id);
    if (data === undefined) continue;
    if (!isSame) found.push({ id, data });
    if (!isShared(id)) kernel.elements.delete(id);
  }
  for (const id of stale) {
    found.push({ id, data: '' });
    kernel.elements.delete(id);
  }
  for (const policy of policies) {
    const set = endpointSetId(wanted.id, policy);
    if (!isSame) found.push(...slotElements(set, kernel.slots.get(set) ?? [], context.suffix));
    kernel.slots.delete(set);
  }
  return { isSame, elements: found };
}

/** Sources that a service's frontends wrongly allow; deleted with the change that adds others, which may overlap. */
function staleRanges(
  kernel: KernelState,
  { frontends, protocol }: PlacedService['service'],
  wanted: readonly Element[],
): readonly ElementId[] {
  if (kernel.ranges.size === 0) return [];
  const found = frontends.flatMap((frontend) => kernel.ranges.get(frontendKey(frontend, protocol)) ?? []);
  if (found.length === 0) return found;
  const ids = new Set(wanted.map(({ id }) => id));
  return [...new Set(found)].filter((id) => !ids.has(id) && kernel.elements.has(id));
}

function withSlot(slots: (string | undefined)[], slot: number, data: string): (string | undefined)[] {
  while (slots.length < slot) slots.push(undefined); // no holes: they make arrays slow
  slots[slot] = data;
  return slots;
}

function isSameSet(
  kernel: KernelState,
  wanted: PlacedService,
  policy: (typeof policies)[number],
  { exactLimit }: RenderContext,
): boolean {
  const slots = wanted.affinity === undefined ? slotsOf(wanted, policy, exactLimit) : [];
  const found = kernel.slots.get(endpointSetId(wanted.id, policy)) ?? [];
  return slots.length === found.length && slots.every((endpoint, slot) => endpointData(endpoint) === found[slot]);
}

function slotElements(set: number, slots: readonly (string | undefined)[], suffix: FamilySuffix): Element[] {
  return slots.flatMap((data, slot) => (data === undefined ? [] : [{ id: slotId(set, slot, suffix), data }]));
}

/** Returns the elements that belong to no service. */
export function staleElements(kernel: KernelState, claims: SharedClaims, suffix: FamilySuffix): readonly ElementId[] {
  const ids: ElementId[] = [];
  for (const id of kernel.elements.keys()) if (!isShared(id) || claims.count(id) === 0) ids.push(id);
  for (const [set, slots] of kernel.slots) for (const { id } of slotElements(set, slots, suffix)) ids.push(id);
  return ids;
}

/** Endpoint sets with session affinity, as read from the kernel. Does not keep the elements. */
class AffinityState {
  /** Per set: place to number. */
  readonly #places = new Map<number, Map<number, number>>();
  /** Per set: number to endpoint. */
  readonly #endpoints = new Map<number, Map<number, string>>();

  /** Records an element of `aff-slots` or `aff-endpoints`; ignores other elements. */
  add(id: ElementId, data: string): void {
    const key = id.slice(id.indexOf(' ') + 1);
    if (id.startsWith('aff-endpoints')) {
      const pin = Number(key);
      put(this.#endpoints, handleId(pin), handleClass(pin), data);
    } else if (id.startsWith('aff-slots')) {
      const [set = 0, place = 0] = key.split(' . ').map(Number);
      put(this.#places, set, place, handleClass(Number(data)));
    }
  }

  *sets(): Generator<number, undefined, unknown> {
    yield* this.#places.keys();
    yield* this.#endpoints.keys();
    return undefined;
  }

  /** The endpoint in each place of a set, as `endpointData`; undefined where a place leads nowhere. Empty: no such set. */
  row(set: number): readonly (string | undefined)[] {
    const places = this.#places.get(set);
    if (places === undefined) return [];
    const endpoints = this.#endpoints.get(set);
    const length = Math.max(...places.keys()) + 1;
    return Array.from({ length }, (_, place) => endpoints?.get(places.get(place) ?? 0));
  }

  numbers(set: number): AffinityNumbers {
    const endpoints = this.#endpoints.get(set);
    return endpoints === undefined ? noNumbers : recoverNumbers(endpoints);
  }
}

function put<T>(sets: Map<number, Map<number, T>>, set: number, key: number, value: T): void {
  const found = sets.get(set);
  if (found === undefined) sets.set(set, new Map([[key, value]]));
  else found.set(key, value);
}
