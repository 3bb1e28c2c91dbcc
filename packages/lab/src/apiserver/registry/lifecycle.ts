import { type JsonObject, listAt, objectAt, stringAt, withFields } from '../json.ts';
import { apiVersionOf, type ResourceDefinition } from '../resource.ts';
import { namespaces } from '../resources/cluster-kinds.ts';
import { StatusError } from '../status-error.ts';
import type { Store, StoredObject, StoreEvent } from '../store.ts';
import type { Registry } from './registry.ts';

export interface LifecycleOptions {
  readonly store: Store;
  readonly registry: Registry;
  readonly resources: readonly ResourceDefinition[];
}

/** Number of deleted owners remembered, so that dependents created shortly afterwards are deleted too. */
const rememberedOwners = 10_000;

/**
 * Does the work of the namespace controller and the garbage collector of kube-controller-manager:
 * empties Terminating namespaces and removes them; deletes what a deleted object owned; handles the
 * `foregroundDeletion` and `orphan` finalizers. Works after the write that caused it, in a later turn of the event loop.
 */
export class Lifecycle implements Disposable {
  readonly #options: LifecycleOptions;
  readonly #subscription: Disposable;
  readonly #dependents = new Map<string, Map<string, StoredObject>>();
  readonly #deletedOwners = new Set<string>();
  readonly #terminating = new Set<string>();
  readonly #due: StoreEvent[] = [];
  #timer: NodeJS.Immediate | undefined;

  constructor(options: LifecycleOptions) {
    this.#options = options;
    this.#subscription = options.store.subscribe(undefined, (event) => this.#observe(event));
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
    clearImmediate(this.#timer);
  }

  /** Updates the index of owners and queues events that need work. */
  #observe(event: StoreEvent): void {
    const { previous, next } = event;
    for (const uid of ownerUids(previous)) this.#dependents.get(uid)?.delete(identity(previous));
    for (const uid of ownerUids(next)) {
      if (next === undefined) continue;
      let known = this.#dependents.get(uid);
      if (known === undefined) this.#dependents.set(uid, (known = new Map()));
      known.set(identity(next), next);
    }
    const isLate = previous === undefined && ownerUids(next).some((uid) => this.#deletedOwners.has(uid));
    const isLeaving = next !== undefined && stringAt(next.value, 'metadata', 'deletionTimestamp') !== '';
    if (next === undefined || isLeaving || isLate) {
      this.#due.push(event);
      this.#timer ??= setImmediate(() => this.#work());
    }
  }

  #work(): void {
    this.#timer = undefined;
    for (const event of this.#due.splice(0)) {
      if (event.next === undefined) this.#afterDeletion(event);
      else if (event.resource === namespaces) this.#terminating.add(event.next.name);
      else if (event.previous === undefined) this.#delete(event.next);
      this.#propagate(event.next);
    }
    for (const namespace of this.#terminating) this.#empty(namespace);
  }

  #afterDeletion(event: StoreEvent): void {
    const { previous } = event;
    if (previous === undefined) return;
    const uid = stringAt(previous.value, 'metadata', 'uid');
    this.#deletedOwners.add(uid);
    const [oldest = ''] = this.#deletedOwners;
    if (this.#deletedOwners.size > rememberedOwners) this.#deletedOwners.delete(oldest);
    for (const dependent of this.#dependents.get(uid)?.values() ?? []) {
      const others = ownerUids(dependent).filter((owner) => !this.#deletedOwners.has(owner));
      if (others.length === 0) this.#delete(dependent);
    }
    this.#dependents.delete(uid);
    // The deletion may have been the last that a foreground deletion waited for.
    for (const owner of ownerUids(previous)) this.#propagate(this.#findOwner(previous, owner));
  }

  /** Applies the propagation finalizers of an object that is being deleted. */
  #propagate(seen: StoredObject | undefined): void {
    if (seen === undefined) return;
    const { store } = this.#options;
    const current = store.get(seen.resource, seen.namespace, seen.name);
    if (current === undefined || stringAt(current.value, 'metadata', 'deletionTimestamp') === '') return;
    const finalizers = listAt(current.value, 'metadata', 'finalizers');
    const uid = stringAt(current.value, 'metadata', 'uid');
    const dependents = [...(this.#dependents.get(uid)?.values() ?? [])];
    if (finalizers.includes('orphan')) {
      for (const dependent of dependents) this.#disown(dependent, uid);
      this.#removeFinalizer(current, 'orphan');
    } else if (finalizers.includes('foregroundDeletion')) {
      if (dependents.length === 0) this.#removeFinalizer(current, 'foregroundDeletion');
      else for (const dependent of dependents) this.#delete(dependent, 'Foreground');
    }
  }

  /** Deletes what is in a terminating namespace, then the namespace itself. */
  #empty(namespace: string): void {
    const { store, resources } = this.#options;
    const contents = resources
      .filter((resource) => resource.isNamespaced)
      .flatMap((resource) => store.list(resource).items.filter((object) => object.namespace === namespace));
    for (const object of contents) {
      if (stringAt(object.value, 'metadata', 'deletionTimestamp') === '') this.#delete(object);
    }
    const isEmpty = contents.every((object) => store.get(object.resource, namespace, object.name) === undefined);
    const current = store.get(namespaces, '', namespace);
    if (!isEmpty) return;
    this.#terminating.delete(namespace);
    if (current !== undefined) store.remove(namespaces, current);
  }

  #delete(object: StoredObject, propagationPolicy?: 'Foreground'): void {
    const { resource, namespace, name } = object;
    const hasDependents = (this.#dependents.get(stringAt(object.value, 'metadata', 'uid'))?.size ?? 0) > 0;
    if (propagationPolicy !== undefined && stringAt(object.value, 'metadata', 'deletionTimestamp') !== '') return;
    const options = { propagationPolicy: hasDependents ? propagationPolicy : undefined };
    ignoreStatus(() => this.#options.registry.delete(resource, { namespace, name }, options));
  }

  #disown(dependent: StoredObject, uid: string): void {
    this.#change(dependent, (metadata) => {
      const owners = listAt(metadata, 'ownerReferences').filter((owner) => stringAt(owner, 'uid') !== uid);
      return withFields(metadata, { ownerReferences: owners.length === 0 ? undefined : owners });
    });
  }

  #removeFinalizer(object: StoredObject, finalizer: string): void {
    this.#change(object, (metadata) => {
      const rest = listAt(metadata, 'finalizers').filter((entry) => entry !== finalizer);
      return withFields(metadata, { finalizers: rest.length === 0 ? undefined : rest });
    });
  }

  #change(object: StoredObject, change: (metadata: JsonObject) => JsonObject): void {
    const { resource, namespace, name } = object;
    const apply = (current: JsonObject): JsonObject => ({
      ...current,
      metadata: withFields(change(objectAt(current, 'metadata')), { resourceVersion: undefined }),
    });
    ignoreStatus(() => this.#options.registry.update(resource, { namespace, name }, { part: 'main', apply }));
  }

  #findOwner(dependent: StoredObject, uid: string): StoredObject | undefined {
    const reference = listAt(dependent.value, 'metadata', 'ownerReferences').find(
      (owner) => stringAt(owner, 'uid') === uid,
    );
    const resource = this.#options.resources.find(
      (candidate) =>
        candidate.kind === stringAt(reference, 'kind') && apiVersionOf(candidate) === stringAt(reference, 'apiVersion'),
    );
    if (resource === undefined) return undefined;
    const namespace = resource.isNamespaced ? dependent.namespace : '';
    return this.#options.store.get(resource, namespace, stringAt(reference, 'name'));
  }
}

function ownerUids(object: StoredObject | undefined): readonly string[] {
  return listAt(object?.value, 'metadata', 'ownerReferences').map((owner) => stringAt(owner, 'uid'));
}

function identity(object: StoredObject | undefined): string {
  return object === undefined ? '' : `${object.resource.plural}.${object.resource.group}${object.key}`;
}

/** Runs an action and ignores its StatusError: another client may have changed or deleted the object first. */
function ignoreStatus(action: () => void): void {
  try {
    action();
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
  }
}
