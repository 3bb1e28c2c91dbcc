import type { ResourceDefinition, ResourceView } from '../resource.ts';
import { type StoredObject, StoredObject as Stored } from './stored-object.ts';
import type { Snapshot, Store, StoreEvent } from './store.ts';

/**
 * The store as it looks through resources that are another one's objects in other words, as the two groups of Events
 * or two versions of a kind: what is written by one is seen in both, under one resource version.
 */
export function withViews(store: Store): Store {
  return {
    get resourceVersion() {
      return store.resourceVersion;
    },
    get oldestVersion() {
      return store.oldestVersion;
    },
    get: (resource, namespace, name) => seenAs(resource, store.get(baseOf(resource), namespace, name)),
    list: (resource) => snapshotAs(resource, store.list(baseOf(resource))),
    listAt: (resource, version) => {
      const snapshot = store.listAt(baseOf(resource), version);
      return snapshot && snapshotAs(resource, snapshot);
    },
    put: (resource, object) => {
      const view = resource.view;
      if (view === undefined) return store.put(resource, object);
      return as(resource, view, store.put(view.of, view.toBase(object)));
    },
    remove: (resource, current) => {
      const view = resource.view;
      if (view === undefined) return store.remove(resource, current);
      const stored = new Stored(view.of, view.toBase(current.value), current.resourceVersion);
      return as(resource, view, store.remove(view.of, stored));
    },
    eventsAfter: (resource, version) =>
      store.eventsAfter(baseOf(resource), version).map((event) => eventAs(resource, event)),
    subscribe: (resource, listener) =>
      store.subscribe(resource && baseOf(resource), (event) =>
        listener(resource === undefined ? event : eventAs(resource, event)),
      ),
    compact: () => store.compact(),
  };
}

function baseOf(resource: ResourceDefinition): ResourceDefinition {
  return resource.view?.of ?? resource;
}

/** One view of an object is made once, so that lists and watches share its texts. */
const views = new WeakMap<StoredObject, StoredObject>();

function as(resource: ResourceDefinition, { fromBase }: ResourceView, object: StoredObject): StoredObject {
  const known = views.get(object);
  if (known?.resource === resource) return known;
  const view = new Stored(resource, fromBase(object.value), object.resourceVersion);
  views.set(object, view);
  return view;
}

function seenAs<T extends StoredObject | undefined>(resource: ResourceDefinition, object: T): T | StoredObject {
  return resource.view === undefined || object === undefined ? object : as(resource, resource.view, object);
}

function snapshotAs(resource: ResourceDefinition, snapshot: Snapshot): Snapshot {
  if (resource.view === undefined) return snapshot;
  return { ...snapshot, items: snapshot.items.map((item) => seenAs(resource, item)) };
}

function eventAs(resource: ResourceDefinition, event: StoreEvent): StoreEvent {
  if (resource.view === undefined) return event;
  const { previous, next, deleted } = event;
  return {
    ...event,
    resource,
    previous: seenAs(resource, previous),
    next: seenAs(resource, next),
    deleted: seenAs(resource, deleted),
  };
}
