import type { ResourceDefinition } from '../resource.ts';
import { StoredObject } from './stored-object.ts';
import type { StoreEvent } from './store.ts';

/** Returns the resource whose objects are stored. */
export function baseOf(resource: ResourceDefinition): ResourceDefinition {
  return resource.view?.of ?? resource;
}

/** Returns an object in its stored representation. */
export function baseObject(object: StoredObject): StoredObject {
  const { view } = object.resource;
  return view === undefined ? object : new StoredObject(view.of, view.toBase(object.value), object.resourceVersion);
}

/** The last view of an object, so that lists and watches share its texts. */
const views = new WeakMap<StoredObject, StoredObject>();

/** Returns a stored object in the representation of a resource. */
export function seenAs<T extends StoredObject | undefined>(resource: ResourceDefinition, object: T): T | StoredObject {
  if (resource.view === undefined || object === undefined) return object;
  const known = views.get(object);
  if (known?.resource === resource) return known;
  const view = new StoredObject(resource, resource.view.fromBase(object.value), object.resourceVersion);
  views.set(object, view);
  return view;
}

/** Returns stored objects in the representation of a resource; the same list for a resource without a view. */
export function listAs(resource: ResourceDefinition, objects: readonly StoredObject[]): readonly StoredObject[] {
  return resource.view === undefined ? objects : objects.map((object) => seenAs(resource, object));
}

/** Returns a stored event in the representation of a resource. */
export function eventAs(resource: ResourceDefinition, event: StoreEvent): StoreEvent {
  if (resource.view === undefined) return event;
  const [previous, next, deleted] = [event.previous, event.next, event.deleted].map((one) => seenAs(resource, one));
  return { ...event, resource, previous, next, deleted };
}
