import {
  type ForwardingTable,
  HostError,
  type ServiceForwarding,
  type ServicePortKey,
  type TableDelta,
} from '@switchyard/core';
import { type KernelState, leftoversOf, recoverIds, takeService } from './adopt.ts';
import type { ElementGroup } from './change-writer.ts';
import { diffElements, diffPlaced } from './diff-service.ts';
import { type Change, type Element, type ElementId, isShared } from './elements.ts';
import { IdPool } from './handles.ts';
import { type Draft, joinDrafts, settleShared } from './join-drafts.ts';
import {
  noPreviousNumbers,
  noSlots,
  type PlacedService,
  placeService,
  type PreviousNumbers,
  previousNumbers,
  type PreviousSlots,
  previousSlots,
} from './place-service.ts';
import { type RenderContext, renderService } from './render-service.ts';
import { SharedClaims } from './shared-claims.ts';

/** What the kernel holds of a service that is not there as its elements are rendered. */
interface Residue {
  readonly id: number;
  readonly elements: readonly Element[];
  readonly slots: PreviousSlots;
  readonly numbers: PreviousNumbers;
}

/** What is to be written. */
export interface Plan {
  readonly groups: readonly ElementGroup[];
  /** Services that cannot be rendered. What they had stays. */
  readonly broken: ReadonlyMap<ServicePortKey, Error>;
}

type Services = ForwardingTable['services'];

/**
 * What the services of one family have in the kernel: per service its forwarding, its id, and its slots where they
 * are out of order. The changes of a service are the difference between what this renders to and what the wanted
 * version renders to. Bookkeeping follows only what was written, by the groups' `settle`, or read back.
 */
export class AppliedServices {
  readonly #context: RenderContext;
  readonly #ids = new IdPool();
  readonly #claims = new SharedClaims();
  #placed = new Map<ServicePortKey, PlacedService>();
  #residues = new Map<ServicePortKey, Residue>();
  /** Services that are not as they were wanted last. They are tried again with the next plan. */
  readonly #failed = new Set<ServicePortKey>();

  constructor(context: RenderContext) {
    this.#context = context;
  }

  /** Services that are in the kernel as they were wanted last. */
  placed(): Iterable<PlacedService> {
    return this.#placed.values();
  }

  /** Whether the service has something in the kernel, as wanted or not. */
  has(key: ServicePortKey): boolean {
    return this.#placed.has(key) || this.#residues.has(key);
  }

  /** The kernel holds nothing. */
  clear(): void {
    this.#placed = new Map();
    this.#residues = new Map();
    this.#failed.clear();
    this.#claims.clear();
    this.#ids.reset([]);
  }

  /**
   * Takes over what was read from the kernel. Services found there as they are wanted are done; of the others it
   * is noted what there is of them. Returns the elements that nobody asks for.
   */
  adopt(kernel: KernelState, services: Services): readonly ElementId[] {
    const [placed, residues] = [this.#placed, this.#residues];
    const known = (key: ServicePortKey): number | undefined => placed.get(key)?.id ?? residues.get(key)?.id;
    const { ids, usedIds } = recoverIds(kernel, services, { known, suffix: this.#context.suffix });
    this.clear();
    this.#ids.reset(usedIds, kernel.countedIds);
    const broken: PlacedService[] = [];
    for (const service of services.values()) {
      const id = ids.get(service.key) ?? this.#ids.allocate();
      if (id === undefined) break; // planning will say so
      const before = placed.get(service.key);
      const isTaken = this.#tryTake(kernel, () => this.#placeFound(service, id, kernel));
      if (!isTaken && before?.id === id) broken.push(before);
    }
    for (const before of broken) this.#tryTake(kernel, () => before);
    return leftoversOf(kernel, this.#claims, this.#context.suffix);
  }

  /** What brings services that are not there as wanted up to date: all that `adopt` did not find. Planned one by one. */
  *planFull(services: Services, broken: Map<ServicePortKey, Error>): Generator<ElementGroup, undefined, unknown> {
    for (const service of services.values()) {
      if (this.#placed.get(service.key)?.service === service) continue;
      const draft = this.#draft(service, broken);
      const group = draft && this.#group([draft]);
      if (group !== undefined) yield group;
    }
    return undefined;
  }

  /** What leads to the next table. Costs nothing for services that the delta does not name. */
  planDelta({ upserted, removed }: TableDelta, services: Services): Plan {
    const broken = new Map<ServicePortKey, Error>();
    const drafts: Draft[] = [];
    const push = (draft: Draft | undefined): void => {
      if (draft !== undefined) drafts.push(draft);
    };
    const failed = [...this.#failed];
    for (const key of removed) push(this.#draftRemoval(key));
    for (const service of upserted) push(this.#draft(service, broken));
    if (failed.length > 0) {
      const named = new Set([...removed, ...upserted.map(({ key }) => key)]);
      for (const key of failed) if (!named.has(key)) push(this.#retry(key, services, broken));
    }
    const groups: ElementGroup[] = [];
    for (const joined of joinDrafts(drafts)) {
      const group = this.#group(joined);
      if (group !== undefined) groups.push(group);
    }
    return { groups, broken };
  }

  #placeFound(service: ServiceForwarding, id: number, kernel: KernelState): PlacedService {
    const { exactLimit, hasAffinity } = this.#context;
    const previous = kernel.previousSlots(id);
    return placeService(service, { id, previous, numbers: kernel.previousNumbers(id), exactLimit, hasAffinity });
  }

  /** False for a service that cannot be rendered: nothing of it is taken then. */
  #tryTake(kernel: KernelState, place: () => PlacedService): boolean {
    try {
      this.#take(kernel, place());
      return true;
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      return false; // planning will say so
    }
  }

  #take(kernel: KernelState, wanted: PlacedService): void {
    const { service, id } = wanted;
    const slots = kernel.previousSlots(id);
    const numbers = kernel.previousNumbers(id);
    const { isSame, elements } = takeService(kernel, wanted, this.#context);
    if (isSame) this.#placed.set(service.key, wanted);
    else this.#residues.set(service.key, { id, elements, slots, numbers });
    for (const element of elements) if (isShared(element.id)) this.#claims.change(element.id, 1);
  }

  #retry(key: ServicePortKey, services: Services, broken: Map<ServicePortKey, Error>): Draft | undefined {
    const service = services.get(key);
    return service === undefined ? this.#draftRemoval(key) : this.#draft(service, broken);
  }

  #draft(service: ServiceForwarding, broken: Map<ServicePortKey, Error>): Draft | undefined {
    const { key } = service;
    const [before, residue] = [this.#placed.get(key), this.#residues.get(key)];
    let id = (before ?? residue)?.id;
    const isNew = id === undefined;
    id ??= this.#ids.allocate();
    try {
      if (id === undefined) throw noFreeId(key);
      const { exactLimit, hasAffinity } = this.#context;
      const past = before === undefined ? (residue?.slots ?? noSlots) : previousSlots(before, exactLimit);
      const numbers = before === undefined ? (residue?.numbers ?? noPreviousNumbers) : previousNumbers(before);
      const after = placeService(service, { id, previous: past, numbers, exactLimit, hasAffinity });
      const changes =
        residue === undefined
          ? diffPlaced(before, after, this.#context)
          : diffElements(residue.elements, renderService(after, this.#context));
      return { key, service: service.service, id, after, changes };
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      if (isNew && id !== undefined) this.#ids.free(id);
      this.#failed.add(key);
      broken.set(key, error);
      return undefined;
    }
  }

  #draftRemoval(key: ServicePortKey): Draft | undefined {
    const [before, residue] = [this.#placed.get(key), this.#residues.get(key)];
    const id = (before ?? residue)?.id;
    if (id === undefined) {
      this.#failed.delete(key);
      return undefined;
    }
    const changes: readonly Change[] =
      residue === undefined ? diffPlaced(before, undefined, this.#context) : diffElements(residue.elements, []);
    return { key, service: key.slice(0, key.indexOf(':')) as Draft['service'], id, after: undefined, changes };
  }

  /** Undefined when there is nothing to write; then it is done. */
  #group(drafts: readonly Draft[]): ElementGroup | undefined {
    const { changes, claims } = settleShared(drafts, this.#claims);
    const settle = (isApplied: boolean): void => {
      for (const draft of drafts) this.#settle(draft, isApplied);
      if (isApplied) for (const [id, by] of claims) this.#claims.change(id, by);
    };
    if (changes.length === 0) {
      settle(true);
      return undefined;
    }
    const keys = drafts.map(({ key }) => key);
    return { owner: { kind: 'services', keys }, changes, together: drafts[0]?.service, settle };
  }

  #settle({ key, id, after }: Draft, isApplied: boolean): void {
    if (!isApplied) {
      this.#failed.add(key);
      if (!this.#placed.has(key) && !this.#residues.has(key)) this.#ids.free(id);
      return;
    }
    this.#failed.delete(key);
    this.#residues.delete(key);
    if (after !== undefined) {
      this.#placed.set(key, after);
      return;
    }
    this.#placed.delete(key);
    this.#ids.free(id);
  }
}

function noFreeId(key: ServicePortKey): HostError {
  return new HostError('nftables.no-free-id', `cannot render ${key}: all service ids are taken; remove Services`);
}
