import { DeltaTracker, type ServicePortKey } from '@switchyard/core';
import { type Change, type Element, type ElementId, isElementChange, splitElementId } from './elements.ts';
import { elementObjects } from './names.ts';

/** Who asks for an element; undefined for what nobody asks for and that must go. */
export type Owner = ServicePortKey | undefined;

/**
 * Which elements the services want and which the kernel has, and the difference as ordered writes.
 *
 * Several services may want the same element (a cluster IP with two ports, one pod behind two Services):
 * it stays until the last of them lets go. Bookkeeping of the kernel's side changes only by
 * `replaceActual` and `markApplied`.
 */
export class ElementTracker {
  readonly #tracker = new DeltaTracker<ElementId, string>();
  readonly #claims = new Map<ServicePortKey, readonly Element[]>();
  /** Only elements with more than one claim are counted. */
  readonly #shared = new Map<ElementId, number>();
  /** The owner of what is pending, for the one who looks for the culprit of a refusal. */
  readonly #owners = new Map<ElementId, Owner>();

  /**
   * Replaces what these services want; an empty list means the service is gone. All of one apply together,
   * so that an element which moves from one service to another is one change.
   */
  claim(wanted: ReadonlyMap<ServicePortKey, readonly Element[]>): void {
    for (const owner of wanted.keys()) this.#withdraw(owner);
    for (const [owner, elements] of wanted) {
      if (elements.length > 0) this.#claims.set(owner, elements);
      for (const { id, data } of elements) this.#add(owner, id, data);
    }
  }

  /** Every service that wants something. */
  owners(): IterableIterator<ServicePortKey> {
    return this.#claims.keys();
  }

  /** Takes over what was read from the kernel. */
  replaceActual(elements: Iterable<Element>): void {
    this.#tracker.replaceActual(pairs(elements));
    this.#owners.clear();
    for (const [owner, claims] of this.#claims) {
      for (const { id, data } of claims) if (this.#tracker.actual(id) !== data) this.#owners.set(id, owner);
    }
  }

  /** What the kernel is known to hold, in no order. */
  *actual(): Generator<Element, undefined, unknown> {
    for (const [id, data] of this.#tracker.actualEntries()) yield { id, data };
    return undefined;
  }

  /** All writes still to be made, by owner. The lists of several owners may be joined, then ordered. */
  pending(): ReadonlyMap<Owner, readonly Change[]> {
    const changes = new Map<Owner, Change[]>();
    const push = (id: ElementId, change: Change): void => {
      const owner = this.#owners.get(id);
      const list = changes.get(owner);
      if (list === undefined) changes.set(owner, [change]);
      else list.push(change);
    };
    for (const [id, { desired, actual }] of this.#tracker.pendingUpdates()) {
      if (actual !== undefined) push(id, { kind: 'delete', id });
      push(id, { kind: 'add', id, data: desired });
    }
    for (const id of this.#tracker.pendingDeletions().keys()) push(id, { kind: 'delete', id });
    return changes;
  }

  /** These changes are in the kernel now. */
  markApplied(changes: readonly Change[]): void {
    for (const change of changes) {
      if (!isElementChange(change)) continue;
      if (change.kind === 'add') this.#tracker.markApplied(change.id, change.data);
      else this.#tracker.markDeleted(change.id);
    }
    for (const change of changes) if (isElementChange(change)) this.#owners.delete(change.id);
  }

  #withdraw(owner: ServicePortKey): void {
    for (const { id } of this.#claims.get(owner) ?? []) {
      const count = this.#shared.get(id);
      if (count === undefined) this.#tracker.deleteDesired(id);
      else if (count === 2) this.#shared.delete(id);
      else this.#shared.set(id, count - 1);
      this.#note(id, owner);
    }
    this.#claims.delete(owner);
  }

  #add(owner: ServicePortKey, id: ElementId, data: string): void {
    if (this.#tracker.desired(id) !== undefined) this.#shared.set(id, (this.#shared.get(id) ?? 1) + 1);
    this.#tracker.setDesired(id, data);
    this.#note(id, owner);
  }

  #note(id: ElementId, owner: ServicePortKey): void {
    if (this.#tracker.actual(id) === this.#tracker.desired(id)) this.#owners.delete(id);
    else this.#owners.set(id, owner);
  }
}

function* pairs(elements: Iterable<Element>): Generator<readonly [ElementId, string], undefined, unknown> {
  for (const { id, data } of elements) yield [id, data];
  return undefined;
}

/** Ranges that overlap cannot be there together, so old ones go before new ones come. */
function isRange(id: ElementId): boolean {
  return id.startsWith('fw-allow');
}

/**
 * The one place that knows the order of writes. What is pointed to is added before what points to it
 * (endpoints, sets, then frontends, then the cluster IPs that make unknown ports an error) and deleted after
 * it. A changed value is a delete and an add of one key. Within one transaction the kernel shows all
 * or nothing; the order counts where a large load is split.
 */
export function orderChanges(changes: readonly Change[]): readonly Change[] {
  const added = new Set(changes.flatMap((change) => (change.kind === 'add' ? [change.id] : [])));
  const stage = (change: Change): number => {
    if (change.kind === 'class') return -1;
    if (change.kind === 'replace') return elementObjects.length * 2;
    const rank = rankOf(change.id);
    if (change.kind === 'add') return rank * 2 + 1;
    const isReplaced = added.has(change.id) || isRange(change.id);
    return isReplaced ? rank * 2 : elementObjects.length * 4 - rank;
  };
  return changes
    .map((change) => ({ change, at: stage(change) }))
    .sort((left, right) => left.at - right.at)
    .map(({ change }) => change);
}

const ranks: ReadonlyMap<string, number> = new Map(
  elementObjects.flatMap((object, rank) => [[`${object}4`, rank] as const, [`${object}6`, rank] as const]),
);

function rankOf(id: ElementId): number {
  return ranks.get(splitElementId(id).object) ?? elementObjects.length;
}
