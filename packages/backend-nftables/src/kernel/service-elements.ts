import {
  type ForwardingTable,
  HostError,
  type ServiceForwarding,
  type ServiceKey,
  type ServicePortKey,
} from '@switchyard/core';
import type { ChangeGroup, ServiceTracker, ServiceWish } from '@switchyard/core/engine';
import { type KernelState, findService, recoverIds, staleElements } from './adopt.ts';
import { chainName, type ClassChain, parseChainName } from '../render/class-chains.ts';
import {
  type Change,
  type Element,
  type ElementId,
  hex,
  IdPool,
  isElementChange,
  isShared,
} from '../render/elements.ts';
import type { FamilySuffix } from '../render/names.ts';
import {
  exactSlotCounts,
  loadBalancingClass,
  loadBalancingClasses,
  type PlacedService,
  type PreviousNumbers,
  type PreviousSlots,
  noPreviousNumbers,
  noSlots,
  placeService,
  previousNumbers,
  previousSlots,
} from '../render/place-service.ts';
import { type RenderContext, diffElements, diffPlaced, renderService } from '../render/render-service.ts';
import { SharedClaims } from '../render/shared-claims.ts';

export type ElementGroup = ChangeGroup<Change>;

/** Kernel elements of a service that differ from its rendering. */
interface FoundElements {
  readonly service: undefined;
  readonly id: number;
  readonly elements: readonly Element[];
  readonly slots: PreviousSlots;
  readonly numbers: PreviousNumbers;
}

/** A service in the kernel: with the elements that its place renders to, or with others that were found. */
export type HeldElements = PlacedService | FoundElements;

/** Services that are in the kernel as their place renders. */
export function* placedServices(tracker: ServiceTracker<HeldElements>): Generator<PlacedService, undefined, unknown> {
  for (const held of tracker.values()) if (held.service !== undefined) yield held;
  return undefined;
}

type Services = ForwardingTable['services'];

/** Turns services into the difference between the kernel's elements and those of the wanted version. */
export class ServiceElements {
  readonly #context: RenderContext;
  readonly #tracker: ServiceTracker<HeldElements>;
  readonly #ids = new IdPool();
  readonly #claims = new SharedClaims();

  constructor(context: RenderContext, tracker: ServiceTracker<HeldElements>) {
    this.#context = context;
    this.#tracker = tracker;
  }

  /** The kernel holds nothing. Returns what it was known to hold. */
  clear(): ReadonlyMap<ServicePortKey, HeldElements> {
    this.#claims.clear();
    this.#ids.reset([]);
    return this.#tracker.clear();
  }

  adopt(kernel: KernelState, services: Services): readonly ElementId[] {
    const held = this.clear();
    const known = (key: ServicePortKey): number | undefined => held.get(key)?.id;
    const { ids, usedIds } = recoverIds(kernel, services, { known, suffix: this.#context.suffix });
    this.#ids.reset(usedIds, kernel.countedIds);
    const unplaced: PlacedService[] = [];
    for (const service of services.values()) {
      const id = ids.get(service.key) ?? this.#ids.allocate();
      if (id === undefined) break; // planning reports it
      const before = held.get(service.key);
      const isAdopted = this.#tryAdopt(kernel, () => this.#placeFound(service, id, kernel));
      if (!isAdopted && before?.service !== undefined && before.id === id) unplaced.push(before);
    }
    for (const before of unplaced) this.#tryAdopt(kernel, () => before);
    return staleElements(kernel, this.#claims, this.#context.suffix);
  }

  /** A group per service, planned one by one. */
  *groups(wishes: Iterable<ServiceWish>): Generator<ElementGroup, undefined, unknown> {
    for (const wish of wishes) yield this.#groupOf(wish);
    return undefined;
  }

  /** Groups of services that pass elements from one to another; all are planned first. */
  joinedGroups(wishes: Iterable<ServiceWish>): readonly ElementGroup[] {
    const groups: ElementGroup[] = [];
    const changes: ServiceChange[] = [];
    for (const wish of wishes) {
      const planned = this.#tryPlan(wish);
      if ('changes' in planned) changes.push(planned);
      else groups.push(planned);
    }
    for (const joined of joinChanges(changes)) groups.push(this.#group(joined));
    return groups;
  }

  #placeFound(service: ServiceForwarding, id: number, kernel: KernelState): PlacedService {
    const { exactLimit, hasAffinity } = this.#context;
    const previous = kernel.previousSlots(id);
    return placeService(service, { id, previous, numbers: kernel.previousNumbers(id), exactLimit, hasAffinity });
  }

  /** False for a service that cannot be rendered: nothing of it is adopted then. */
  #tryAdopt(kernel: KernelState, place: () => PlacedService): boolean {
    try {
      this.#adopt(kernel, place());
      return true;
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      return false; // planning reports it
    }
  }

  #adopt(kernel: KernelState, wanted: PlacedService): void {
    const { service, id } = wanted;
    const slots = kernel.previousSlots(id);
    const numbers = kernel.previousNumbers(id);
    const { isSame, elements } = findService(kernel, wanted, this.#context);
    this.#tracker.set(service.key, isSame ? wanted : { service: undefined, id, elements, slots, numbers });
    for (const element of elements) if (isShared(element.id)) this.#claims.change(element.id, 1);
  }

  #groupOf(wish: ServiceWish): ElementGroup {
    const planned = this.#tryPlan(wish);
    return 'changes' in planned ? this.#group([planned]) : planned;
  }

  /** A service that cannot be rendered is a group whose plan throws. Its elements in the kernel stay. */
  #tryPlan(wish: ServiceWish): ServiceChange | ElementGroup {
    try {
      return this.#plan(wish);
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      const plan = (): never => {
        throw error;
      };
      return { owner: { kind: 'services', keys: [wish.key] }, plan, settle: () => undefined };
    }
  }

  #plan({ key, service }: ServiceWish): ServiceChange {
    const held = this.#tracker.get(key);
    if (service === undefined) {
      const owner = key.slice(0, key.indexOf(':')) as ServiceKey;
      return { key, service: owner, id: held?.id, after: undefined, changes: this.#diff(held, undefined) };
    }
    const id = held?.id ?? this.#ids.allocate();
    if (id === undefined) throw noFreeId(key);
    try {
      const after = this.#place(service, id, held);
      const changes = this.#diff(held, after);
      return { key, service: service.service, id, after, changes };
    } catch (error) {
      if (held === undefined) this.#ids.free(id);
      throw error;
    }
  }

  #place(service: ServiceForwarding, id: number, held: HeldElements | undefined): PlacedService {
    const { exactLimit, hasAffinity } = this.#context;
    const isPlaced = held?.service !== undefined;
    const previous = isPlaced ? previousSlots(held, exactLimit) : (held?.slots ?? noSlots);
    const numbers = isPlaced ? previousNumbers(held) : (held?.numbers ?? noPreviousNumbers);
    return placeService(service, { id, previous, numbers, exactLimit, hasAffinity });
  }

  #diff(held: HeldElements | undefined, after: PlacedService | undefined): readonly Change[] {
    if (held === undefined || held.service !== undefined) return diffPlaced(held, after, this.#context);
    return diffElements(held.elements, after === undefined ? [] : renderService(after, this.#context));
  }

  #group(joined: readonly ServiceChange[]): ElementGroup {
    const keys = joined.map(({ key }) => key);
    let combined: ReturnType<typeof combineChanges> | undefined;
    return {
      owner: { kind: 'services', keys },
      together: joined[0]?.service,
      plan: () => (combined ??= combineChanges(joined, this.#claims)).changes,
      settle: (isApplied) => {
        for (const change of joined) this.#settle(change, isApplied);
        if (isApplied) for (const [id, by] of combined?.claims ?? []) this.#claims.change(id, by);
      },
    };
  }

  #settle({ key, id, after }: ServiceChange, isApplied: boolean): void {
    if (isApplied) this.#tracker.set(key, after);
    const isFree = this.#tracker.get(key) === undefined;
    if (isFree && id !== undefined) this.#ids.free(id);
  }
}

function noFreeId(key: ServicePortKey): HostError {
  return new HostError('nftables.no-free-id', `cannot render ${key}: all service ids are taken; remove Services`);
}

/** The changes of one service, before those of elements that it shares with others are combined. */
export interface ServiceChange {
  readonly key: ServicePortKey;
  readonly service: ServiceKey;
  /** Undefined for a removed service that had nothing in the kernel. */
  readonly id: number | undefined;
  /** The service as the kernel holds it after the changes; undefined: nothing of it. */
  readonly after: PlacedService | undefined;
  /** As if no other service had any of these elements. */
  readonly changes: readonly Change[];
}

/** Joins services of which one deletes an element that another adds or deletes: written apart, their order would decide what remains. */
export function joinChanges(services: readonly ServiceChange[]): readonly (readonly ServiceChange[])[] {
  if (services.length < 2) return services.length === 0 ? [] : [services];
  const deleters = new Map<ElementId, number>();
  const roots = services.map((_, index) => index);
  const rootOf = (index: number): number => {
    let root = index;
    while (roots[root] !== root) root = roots[root] ?? root;
    roots[index] = root;
    return root;
  };
  const join = (a: number, b: number): void => {
    const [first, second] = [rootOf(a), rootOf(b)];
    roots[Math.max(first, second)] = Math.min(first, second);
  };
  services.forEach(({ changes }, index) => {
    for (const change of changes) {
      if (change.kind !== 'delete') continue;
      const other = deleters.get(change.id);
      if (other === undefined) deleters.set(change.id, index);
      else join(other, index);
    }
  });
  if (deleters.size > 0) {
    services.forEach(({ changes }, index) => {
      for (const change of changes) {
        const other = change.kind === 'add' ? deleters.get(change.id) : undefined;
        if (other !== undefined) join(other, index);
      }
    });
  }
  const joined = Map.groupBy(services.keys(), rootOf);
  return [...joined.values()].map((indexes) => indexes.flatMap((index) => services[index] ?? []));
}

export interface CombinedChanges {
  readonly changes: readonly Change[];
  readonly claims: ReadonlyMap<ElementId, number>;
}

const noClaims: ReadonlyMap<ElementId, number> = new Map();

/** Omits additions of existing shared elements, and deletions of those that other services have. */
export function combineChanges(services: readonly ServiceChange[], claims: SharedClaims): CombinedChanges {
  const all = services.length === 1 ? (services[0]?.changes ?? []) : services.flatMap(({ changes }) => changes);
  if (!all.some((change) => isElementChange(change) && isShared(change.id))) return { changes: all, claims: noClaims };
  const changes: Change[] = [];
  const net = new Map<ElementId, number>();
  for (const change of all) {
    if (!isElementChange(change) || !isShared(change.id)) changes.push(change);
    else net.set(change.id, (net.get(change.id) ?? 0) + (change.kind === 'add' ? 1 : -1));
  }
  for (const [id, by] of net) {
    const count = claims.count(id);
    if (count === 0 && by > 0) changes.push({ kind: 'add', id, data: '' });
    else if (count > 0 && count + by === 0) changes.push({ kind: 'delete', id });
  }
  return { changes, claims: net };
}

/** Part of every table with our rules, also where a list of the classes lacks some, as it may while its map grows. */
const preloaded: readonly number[] = loadBalancingClasses.map(({ handleClass }) => handleClass);

/** Session affinity has these classes, one per number of slots and timeout, numbered as they come. */
const firstAffinityClass = 0x800;
const lastAffinityClass = 0xfff;

/** The classes of one family. A number is never given to another chain while the table lives, so what was rendered once stays right. */
export class ClassPool {
  readonly #suffix: FamilySuffix;
  /** Classes that have their chain in the kernel. */
  readonly #present: Set<number>;
  readonly #affinityClasses = new Map<string, number>();
  readonly #chains = new Map<number, ClassChain>();
  #next = firstAffinityClass;

  constructor(suffix: FamilySuffix) {
    this.#suffix = suffix;
    this.#present = new Set(preloaded);
  }

  /** Replaces the content by the kernel's classes: class to the name of its chain. */
  reset(classes: ReadonlyMap<number, string>): void {
    this.#present.clear();
    for (const handleClass of preloaded) this.#present.add(handleClass);
    this.#affinityClasses.clear();
    this.#chains.clear();
    this.#next = firstAffinityClass;
    for (const [handleClass, name] of classes) {
      const chain = parseChainName(name, this.#suffix);
      this.#present.add(handleClass);
      if (handleClass >= firstAffinityClass) this.#next = Math.max(this.#next, handleClass + 1);
      if (chain === undefined) continue;
      this.#chains.set(handleClass, chain);
      if (chain.kind === 'affinity' && !this.#affinityClasses.has(name)) this.#affinityClasses.set(name, handleClass);
    }
  }

  /** The class of a chain; for affinity a new one where there was none. Throws `HostError` when all are taken. */
  classOf(chain: ClassChain): number {
    if (chain.kind === 'lb') return loadBalancingClass(chain.slots);
    const name = chainName(chain, this.#suffix);
    const known = this.#affinityClasses.get(name);
    if (known !== undefined) return known;
    if (this.#next > lastAffinityClass) throw allTaken(name);
    const handleClass = this.#next++;
    this.#affinityClasses.set(name, handleClass);
    this.#chains.set(handleClass, chain);
    return handleClass;
  }

  /** The change that gives a class its chain; undefined when the kernel has it, or for an unknown class. */
  missing(handleClass: number): ClassChange | undefined {
    if (this.#present.has(handleClass)) return undefined;
    const chain = this.#chains.get(handleClass) ?? lbChain(handleClass);
    return chain && { kind: 'class', suffix: this.#suffix, handleClass, chain };
  }

  markAdded(handleClass: number): void {
    this.#present.add(handleClass);
  }
}

type ClassChange = Extract<Change, { kind: 'class' }>;

/** Exact classes are their number of slots. */
function lbChain(handleClass: number): ClassChain | undefined {
  return handleClass > 0 && handleClass <= exactSlotCounts ? { kind: 'lb', slots: handleClass } : undefined;
}

function allTaken(name: string): HostError {
  const range = `${hex(firstAffinityClass)} to ${hex(lastAffinityClass)}`;
  return new HostError(
    'nftables.no-free-class',
    `cannot give chain ${name} a class: ${range} are all taken; use fewer different session affinity timeouts, ` +
      'or run the agent with --cleanup once, then again',
  );
}
