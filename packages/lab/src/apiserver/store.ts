import { compareTexts } from '@switchyard/core';
import { type JsonObject, type MutableJsonObject, objectAt, stringAt } from './json.ts';
import { apiVersionOf, type ResourceDefinition } from './resource.ts';
import { objectMeta } from './schema.ts';
import type { Allocations } from './allocations.ts';

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** One version of one object. Immutable; its JSON text and event lines are built once, at their first use. */
export class StoredObject {
  readonly resource: ResourceDefinition;
  /** `/namespace/name`; the namespace is empty for cluster-scoped kinds. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: number;
  /** Without `kind` and `apiVersion`. */
  readonly value: JsonObject;
  #itemText: string | undefined;
  #lines: Partial<Record<WatchEventType, string>> = {};

  constructor(resource: ResourceDefinition, value: JsonObject, resourceVersion: number) {
    this.resource = resource;
    this.namespace = stringAt(value, 'metadata', 'namespace');
    this.name = stringAt(value, 'metadata', 'name');
    this.key = `/${this.namespace}/${this.name}`;
    this.resourceVersion = resourceVersion;
    this.value = value;
  }

  /** JSON text in a list: without `kind` and `apiVersion`. */
  get itemText(): string {
    this.#itemText ??= JSON.stringify(this.value);
    return this.#itemText;
  }

  /** JSON text of the whole object. */
  get text(): string {
    return `{"kind":"${this.resource.kind}","apiVersion":"${apiVersionOf(this.resource)}",${this.itemText.slice(1)}`;
  }

  line(type: WatchEventType): string {
    const known = this.#lines[type];
    if (known !== undefined) return known;
    const line = `{"type":"${type}","object":${this.text}}\n`;
    this.#lines[type] = line;
    return line;
  }
}

const { selfLink: _selfLink, managedFields: _managedFields, ...metaFields } = objectMeta.fields;

/**
 * Returns `object` as one stored version: without type fields, `metadata` in the server's order with this version.
 * An undefined version is for a dry run: the object then carries none.
 */
export function storedObject(
  resource: ResourceDefinition,
  object: JsonObject,
  version: number | undefined,
): StoredObject {
  const { kind: _kind, apiVersion: _apiVersion, metadata: _metadata, ...rest } = object;
  const given = objectAt(object, 'metadata');
  const metadata: MutableJsonObject = {};
  for (const field in metaFields) {
    const value = field === 'resourceVersion' ? version?.toString() : given[field];
    if (value !== undefined) metadata[field] = value;
  }
  return new StoredObject(resource, { metadata, ...rest }, version ?? 0);
}

/** Returns the resource whose objects are stored. */
function baseOf(resource: ResourceDefinition): ResourceDefinition {
  return resource.view?.of ?? resource;
}

function baseObject(object: StoredObject): StoredObject {
  const { view } = object.resource;
  return view === undefined ? object : new StoredObject(view.of, view.toBase(object.value), object.resourceVersion);
}

/** The last view of an object, so that lists and watches share its texts. */
const views = new WeakMap<StoredObject, StoredObject>();

function seenAs<T extends StoredObject | undefined>(resource: ResourceDefinition, object: T): T | StoredObject {
  if (resource.view === undefined || object === undefined) return object;
  const known = views.get(object);
  if (known?.resource === resource) return known;
  const view = new StoredObject(resource, resource.view.fromBase(object.value), object.resourceVersion);
  views.set(object, view);
  return view;
}

/** Returns stored objects in the representation of a resource; the same list for a resource without a view. */
function listAs(resource: ResourceDefinition, objects: readonly StoredObject[]): readonly StoredObject[] {
  return resource.view === undefined ? objects : objects.map((object) => seenAs(resource, object));
}

function eventAs(resource: ResourceDefinition, event: StoreEvent): StoreEvent {
  if (resource.view === undefined) return event;
  const [previous, next, deleted] = [event.previous, event.next, event.deleted].map((one) => seenAs(resource, one));
  return { ...event, resource, previous, next, deleted };
}

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

/** A full list at one version. Items are in key order (namespace, then name). */
export interface Snapshot {
  readonly resourceVersion: number;
  readonly items: readonly StoredObject[];
}

interface Collection {
  readonly byKey: Map<string, StoredObject>;
  readonly listeners: Set<(event: StoreEvent) => void>;
  readonly history: StoreEvent[];
  /** In key order; undefined when it must be built again. */
  sorted: readonly StoredObject[] | undefined;
}

/**
 * All objects, one global version counter, and the recent history. Writes are synchronous and call their listeners before
 * they return, so a watcher never misses or reorders an event. Objects are immutable; a write replaces them. Those of a
 * resource with a view are stored as those of the resource it is a view of: a write to one is visible in both, under one
 * resource version.
 */
export class Store {
  readonly #allocations: Allocations;
  /** Maximum number of events over all resources; above it the older half is removed. */
  readonly #historyLimit: number;
  readonly #collections = new Map<ResourceDefinition, Collection>();
  readonly #allListeners = new Set<(event: StoreEvent) => void>();
  #version = 1;
  #oldest = 1;
  #historyLength = 0;

  constructor(allocations: Allocations, historyLimit: number) {
    this.#allocations = allocations;
    this.#historyLimit = historyLimit;
  }

  /** Version of the newest write. */
  get resourceVersion(): number {
    return this.#version;
  }

  /** A watch or an exact list from a version below this answers 410. */
  get oldestVersion(): number {
    return this.#oldest;
  }

  get(resource: ResourceDefinition, namespace: string, name: string): StoredObject | undefined {
    return seenAs(resource, this.#collection(resource).byKey.get(`/${namespace}/${name}`));
  }

  /** All objects now. The list is shared and must not be changed. */
  list(resource: ResourceDefinition): Snapshot {
    const collection = this.#collection(resource);
    collection.sorted ??= [...collection.byKey.values()].sort((a, b) => compareTexts(a.key, b.key));
    return { resourceVersion: this.#version, items: listAs(resource, collection.sorted) };
  }

  /** All objects as of an earlier version; undefined when the history no longer reaches it. */
  listAt(resource: ResourceDefinition, version: number): Snapshot | undefined {
    if (version < this.#oldest) return undefined;
    const collection = this.#collection(resource);
    const later = eventsAfter(collection, version);
    if (later.length === 0) return { ...this.list(resource), resourceVersion: version };
    const byKey = new Map(collection.byKey);
    for (let index = later.length - 1; index >= 0; index--) {
      const event = later[index];
      const subject = event?.next ?? event?.previous;
      if (event === undefined || subject === undefined) continue;
      if (event.previous === undefined) byKey.delete(subject.key);
      else byKey.set(subject.key, event.previous);
    }
    return {
      resourceVersion: version,
      items: listAs(
        resource,
        [...byKey.values()].sort((a, b) => compareTexts(a.key, b.key)),
      ),
    };
  }

  /** Stores `object` (with its new version filled in) and replaces the old version. */
  put(resource: ResourceDefinition, object: JsonObject): StoredObject {
    const base = baseOf(resource);
    const collection = this.#collection(resource);
    const next = storedObject(base, resource.view?.toBase(object) ?? object, ++this.#version);
    const previous = collection.byKey.get(next.key);
    collection.byKey.set(next.key, next);
    collection.sorted = undefined;
    this.#allocations.replace(previous === undefined ? [] : base.claims(previous.value), base.claims(next.value));
    const resourceVersion = this.#version;
    this.#publish(collection, { resourceVersion, resource: base, previous, next, deleted: undefined });
    return seenAs(resource, next);
  }

  /** Removes an object and returns its last state with the deletion's version. */
  remove(resource: ResourceDefinition, current: StoredObject): StoredObject {
    const base = baseOf(resource);
    const collection = this.#collection(resource);
    const previous = baseObject(current);
    const deleted = storedObject(base, previous.value, ++this.#version);
    collection.byKey.delete(current.key);
    collection.sorted = undefined;
    this.#allocations.replace(base.claims(previous.value), []);
    const resourceVersion = this.#version;
    this.#publish(collection, { resourceVersion, resource: base, previous, next: undefined, deleted });
    return seenAs(resource, deleted);
  }

  /** Events of one resource after `version`, oldest first. Check `oldestVersion` first. */
  eventsAfter(resource: ResourceDefinition, version: number): readonly StoreEvent[] {
    return eventsAfter(this.#collection(resource), version).map((event) => eventAs(resource, event));
  }

  /** Calls `listener` for every later write of `resource`, or of all resources when undefined. */
  subscribe(resource: ResourceDefinition | undefined, listener: (event: StoreEvent) => void): Disposable {
    const listeners = resource === undefined ? this.#allListeners : this.#collection(resource).listeners;
    const own = (event: StoreEvent): void => listener(resource === undefined ? event : eventAs(resource, event));
    listeners.add(own);
    return { [Symbol.dispose]: () => void listeners.delete(own) };
  }

  /** Removes the history: every older version then answers 410. */
  compact(): void {
    this.#forgetBefore(this.#version);
  }

  #publish(collection: Collection, event: StoreEvent): void {
    collection.history.push(event);
    this.#historyLength++;
    if (this.#historyLength > this.#historyLimit) this.#forgetOlderHalf();
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
    const base = baseOf(resource);
    let collection = this.#collections.get(base);
    if (collection === undefined) {
      collection = { byKey: new Map(), listeners: new Set(), history: [], sorted: undefined };
      this.#collections.set(base, collection);
    }
    return collection;
  }
}

function eventsAfter({ history }: Collection, version: number): readonly StoreEvent[] {
  let low = 0;
  let high = history.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((history[middle]?.resourceVersion ?? 0) > version) high = middle;
    else low = middle + 1;
  }
  return history.slice(low);
}
