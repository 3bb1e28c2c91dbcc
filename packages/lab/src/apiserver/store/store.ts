import type { Allocations } from '../allocations.ts';
import type { JsonObject } from '../json.ts';
import type { ResourceDefinition } from '../resource.ts';
import { type StoredObject, storedObject } from './stored-object.ts';
import { withViews } from './views.ts';

/** One write, as watchers and the history see it. */
export interface StoreEvent {
  readonly resourceVersion: number;
  readonly resource: ResourceDefinition;
  /** State before; undefined for a creation. */
  readonly previous: StoredObject | undefined;
  /** State after; undefined for a deletion. */
  readonly next: StoredObject | undefined;
  /** For a deletion: the last state, carrying the version of the deletion. */
  readonly deleted: StoredObject | undefined;
}

/** What a full list at one version is. Items are in key order (namespace, then name). */
export interface Snapshot {
  readonly resourceVersion: number;
  readonly items: readonly StoredObject[];
}

/**
 * All objects, one global version counter, and the recent history.
 *
 * Writes are synchronous and tell their listeners before they return, so a watcher can never miss or
 * reorder an event. Objects are immutable; a write replaces them.
 */
export interface Store {
  /** Version of the newest write. */
  readonly resourceVersion: number;
  /** A watch or an exact list from a version below this answers 410. */
  readonly oldestVersion: number;
  get(resource: ResourceDefinition, namespace: string, name: string): StoredObject | undefined;
  /** All objects now. The list is shared and must not be changed. */
  list(resource: ResourceDefinition): Snapshot;
  /** All objects as of an earlier version; undefined when the history no longer reaches it. */
  listAt(resource: ResourceDefinition, version: number): Snapshot | undefined;
  /** Stores `object` (with its new version filled in) in place of what is there. */
  put(resource: ResourceDefinition, object: JsonObject): StoredObject;
  /** Removes; the result is the last state with the deletion's version. */
  remove(resource: ResourceDefinition, current: StoredObject): StoredObject;
  /** Events of one resource after `version`, oldest first. Ask `oldestVersion` first. */
  eventsAfter(resource: ResourceDefinition, version: number): readonly StoreEvent[];
  /** Calls `listener` for every later write of `resource`, or of all resources when undefined. */
  subscribe(resource: ResourceDefinition | undefined, listener: (event: StoreEvent) => void): Disposable;
  /** Forgets the history: from now on every older version is gone (410). */
  compact(): void;
}

/** How much a store remembers. */
export interface StoreOptions {
  readonly allocations: Allocations;
  /** Events kept over all resources; when it is exceeded the older half goes. */
  readonly historyLimit: number;
}

interface Collection {
  readonly byKey: Map<string, StoredObject>;
  readonly listeners: Set<(event: StoreEvent) => void>;
  readonly history: StoreEvent[];
  /** In key order; undefined when it must be built again. */
  sorted: readonly StoredObject[] | undefined;
}

/** Makes an empty store. */
export function createStore(options: StoreOptions): Store {
  return withViews(new MemoryStore(options));
}

class MemoryStore implements Store {
  readonly #options: StoreOptions;
  readonly #collections = new Map<ResourceDefinition, Collection>();
  readonly #allListeners = new Set<(event: StoreEvent) => void>();
  #version = 1;
  #oldest = 1;
  #historyLength = 0;

  constructor(options: StoreOptions) {
    this.#options = options;
  }

  get resourceVersion(): number {
    return this.#version;
  }

  get oldestVersion(): number {
    return this.#oldest;
  }

  get(resource: ResourceDefinition, namespace: string, name: string): StoredObject | undefined {
    return this.#collection(resource).byKey.get(keyOf(namespace, name));
  }

  list(resource: ResourceDefinition): Snapshot {
    const collection = this.#collection(resource);
    collection.sorted ??= [...collection.byKey.values()].sort(byKeyOrder);
    return { resourceVersion: this.#version, items: collection.sorted };
  }

  listAt(resource: ResourceDefinition, version: number): Snapshot | undefined {
    if (version < this.#oldest) return undefined;
    const later = this.eventsAfter(resource, version);
    if (later.length === 0) return { ...this.list(resource), resourceVersion: version };
    const byKey = new Map(this.#collection(resource).byKey);
    for (let index = later.length - 1; index >= 0; index--) {
      const event = later[index];
      const subject = event?.next ?? event?.previous;
      if (event === undefined || subject === undefined) continue;
      if (event.previous === undefined) byKey.delete(subject.key);
      else byKey.set(subject.key, event.previous);
    }
    return { resourceVersion: version, items: [...byKey.values()].sort(byKeyOrder) };
  }

  put(resource: ResourceDefinition, object: JsonObject): StoredObject {
    const collection = this.#collection(resource);
    const next = storedObject(resource, object, ++this.#version);
    const previous = collection.byKey.get(next.key);
    collection.byKey.set(next.key, next);
    collection.sorted = undefined;
    this.#options.allocations.replace(
      previous === undefined ? [] : resource.claims(previous.value),
      resource.claims(next.value),
    );
    const resourceVersion = this.#version;
    this.#publish(collection, { resourceVersion, resource, previous, next, deleted: undefined });
    return next;
  }

  remove(resource: ResourceDefinition, current: StoredObject): StoredObject {
    const collection = this.#collection(resource);
    const deleted = storedObject(resource, current.value, ++this.#version);
    collection.byKey.delete(current.key);
    collection.sorted = undefined;
    this.#options.allocations.replace(resource.claims(current.value), []);
    const resourceVersion = this.#version;
    this.#publish(collection, { resourceVersion, resource, previous: current, next: undefined, deleted });
    return deleted;
  }

  eventsAfter(resource: ResourceDefinition, version: number): readonly StoreEvent[] {
    const { history } = this.#collection(resource);
    let low = 0;
    let high = history.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((history[middle]?.resourceVersion ?? 0) > version) high = middle;
      else low = middle + 1;
    }
    return history.slice(low);
  }

  subscribe(resource: ResourceDefinition | undefined, listener: (event: StoreEvent) => void): Disposable {
    const listeners = resource === undefined ? this.#allListeners : this.#collection(resource).listeners;
    listeners.add(listener);
    return { [Symbol.dispose]: () => void listeners.delete(listener) };
  }

  compact(): void {
    this.#forgetBefore(this.#version);
  }

  #publish(collection: Collection, event: StoreEvent): void {
    collection.history.push(event);
    this.#historyLength++;
    if (this.#historyLength > this.#options.historyLimit) this.#forgetOlderHalf();
    for (const listener of collection.listeners) listener(event);
    for (const listener of this.#allListeners) listener(event);
  }

  #forgetOlderHalf(): void {
    const versions: number[] = [];
    for (const { history } of this.#collections.values()) {
      for (const event of history) versions.push(event.resourceVersion);
    }
    versions.sort((a, b) => a - b);
    this.#forgetBefore(versions[versions.length >> 1] ?? this.#version);
  }

  #forgetBefore(version: number): void {
    this.#oldest = version;
    this.#historyLength = 0;
    for (const { history } of this.#collections.values()) {
      const first = history.findIndex((event) => event.resourceVersion > version);
      history.splice(0, first === -1 ? history.length : first);
      this.#historyLength += history.length;
    }
  }

  #collection(resource: ResourceDefinition): Collection {
    let collection = this.#collections.get(resource);
    if (collection === undefined) {
      collection = { byKey: new Map(), listeners: new Set(), history: [], sorted: undefined };
      this.#collections.set(resource, collection);
    }
    return collection;
  }
}

/** Order of lists: by namespace, then by name, bytewise. */
function byKeyOrder(a: StoredObject, b: StoredObject): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}

function keyOf(namespace: string, name: string): string {
  return `/${namespace}/${name}`;
}
