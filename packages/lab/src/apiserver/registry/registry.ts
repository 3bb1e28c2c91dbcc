import type { Clock, Random } from '@switchyard/core';
import type { Allocations } from '../allocations.ts';
import { type JsonObject, listAt, type MutableJsonObject, numberAt, objectAt, stringAt } from '../json.ts';
import type { ResourceDefinition } from '../resource.ts';
import type { Store, StoredObject } from '../store.ts';
import { createObject, timestamp, updateObject } from './write-object.ts';
import { namespaces } from '../resources/cluster-kinds.ts';
import { conflict, forbidden, notFound } from '../status-error.ts';

/** Options of a write. */
export interface WriteOptions {
  /** Skips storing. Default false. */
  readonly isDryRun?: boolean;
  /** Handling of unknown fields: drop (default), drop and warn, or refuse. */
  readonly fieldValidation?: 'Ignore' | 'Warn' | 'Strict';
}

/** Result of a write. */
export interface WriteResult {
  readonly object: StoredObject;
  /** Texts for the client, for example about unknown fields. */
  readonly warnings: readonly string[];
}

/** Name of an object. `namespace` is '' for cluster-scoped kinds. */
export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

/** A change to an existing object: from the current state (with type fields) to the wanted one. */
export interface ObjectChange {
  /** `main` ignores status, `status` ignores everything else but labels and annotations. */
  readonly part: 'main' | 'status';
  readonly apply: (current: JsonObject) => JsonObject;
}

export interface DeletionOptions {
  readonly gracePeriodSeconds?: number | undefined;
  readonly propagationPolicy?: string | undefined;
  readonly isDryRun?: boolean;
  /** Preconditions; '' is none. */
  readonly uid?: string;
  readonly resourceVersion?: string;
}

interface DeletionResult {
  /** Last state if `isGone`; otherwise the state that waits for its finalizers or its grace period. */
  readonly object: StoredObject;
  readonly isGone: boolean;
}

/** Dependencies of the write path. */
export interface RegistryContext {
  readonly store: Store;
  readonly allocations: Allocations;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * The write path: decoding, defaults, allocation, validation, generations, finalizers. Every method rejects with a
 * `StatusError` that a client would get; nothing is stored then.
 */
export interface Registry {
  /** `namespace` is that of the request; '' for cluster-scoped kinds. */
  create(resource: ResourceDefinition, namespace: string, body: JsonObject, options?: WriteOptions): WriteResult;
  /** A change without a difference keeps the version and produces no watch event. */
  update(resource: ResourceDefinition, name: ObjectName, change: ObjectChange, options?: WriteOptions): WriteResult;
  delete(resource: ResourceDefinition, name: ObjectName, options?: DeletionOptions): DeletionResult;
}

/** Creates the write path of one server. */
export function createRegistry(context: RegistryContext): Registry {
  return {
    create: (resource, namespace, body, options = {}) => createObject(context, resource, { namespace, body, options }),
    update: (resource, name, change, options = {}) => updateObject(context, resource, { name, change, options }),
    delete: (resource, name, options = {}) => deleteObject(context, resource, name, options),
  };
}

const propagationFinalizers: Readonly<Record<string, string>> = {
  Foreground: 'foregroundDeletion',
  Orphan: 'orphan',
};

/** Deletes one object, or starts its deletion if it has finalizers or a grace period. */
function deleteObject(
  context: RegistryContext,
  resource: ResourceDefinition,
  name: ObjectName,
  options: DeletionOptions,
): DeletionResult {
  const current = context.store.get(resource, name.namespace, name.name);
  if (current === undefined) throw notFound(resource, name.name);
  checkPreconditions(resource, current, options);
  if (resource === namespaces) return deleteNamespace(context, resource, current, options);
  const grace = gracePeriod(resource, current.value, options);
  const finalizers = finalizersFor(current.value, options);
  const isImmediate = finalizers.length === 0 && (grace === undefined || grace === 0);
  if (options.isDryRun === true) return { object: current, isGone: isImmediate };
  const marked = mark(context, resource, current, { grace, finalizers });
  if (!isImmediate) return { object: marked, isGone: false };
  return { object: context.store.remove(resource, marked), isGone: true };
}

function checkPreconditions(resource: ResourceDefinition, current: StoredObject, options: DeletionOptions): void {
  const { uid = '', resourceVersion = '' } = options;
  const currentUid = stringAt(current.value, 'metadata', 'uid');
  if (uid !== '' && uid !== currentUid) {
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${currentUid}`;
    throw conflict(resource, current.name, why);
  }
  if (resourceVersion !== '' && resourceVersion !== String(current.resourceVersion)) {
    const why = `Precondition failed: ResourceVersion in precondition: ${resourceVersion}, ResourceVersion in object meta: ${current.resourceVersion}`;
    throw conflict(resource, current.name, why);
  }
}

/**
 * Grace period of a pod in seconds; undefined for kinds without one. 0 for a pod that no node runs (not bound,
 * or finished). A running deletion can only get shorter.
 */
function gracePeriod(resource: ResourceDefinition, object: JsonObject, options: DeletionOptions): number | undefined {
  if (!resource.hasGracefulDeletion) return undefined;
  const phase = stringAt(object, 'status', 'phase');
  const isRunning = stringAt(object, 'spec', 'nodeName') !== '' && phase !== 'Succeeded' && phase !== 'Failed';
  if (!isRunning) return 0;
  const own = numberAt(object, 'spec', 'terminationGracePeriodSeconds') ?? 30;
  const wanted = Math.max(0, options.gracePeriodSeconds ?? own);
  const pending = numberAt(object, 'metadata', 'deletionGracePeriodSeconds');
  return pending === undefined ? wanted : Math.min(pending, wanted);
}

function finalizersFor(object: JsonObject, options: DeletionOptions): readonly string[] {
  const present = listAt(object, 'metadata', 'finalizers').map(String);
  const added = propagationFinalizers[options.propagationPolicy ?? ''];
  return added === undefined || present.includes(added) ? present : [...present, added];
}

/** Writes deletionTimestamp, grace period and finalizers if they change. */
function mark(
  context: RegistryContext,
  resource: ResourceDefinition,
  current: StoredObject,
  how: { readonly grace: number | undefined; readonly finalizers: readonly string[] },
): StoredObject {
  const { grace, finalizers } = how;
  if (grace === undefined && finalizers.length === 0) return current;
  const metadata: MutableJsonObject = { ...objectAt(current.value, 'metadata') };
  const isFirst = metadata['deletionTimestamp'] === undefined;
  const isShorter = grace !== undefined && grace !== metadata['deletionGracePeriodSeconds'];
  if (!isFirst && !isShorter) return current;
  metadata['deletionTimestamp'] = timestamp(context, grace ?? 0);
  metadata['deletionGracePeriodSeconds'] = grace ?? 0;
  if (finalizers.length > 0) metadata['finalizers'] = finalizers;
  if (isFirst && resource.hasGeneration) {
    metadata['generation'] = (numberAt(current.value, 'metadata', 'generation') ?? 0) + 1;
  }
  return context.store.put(resource, { ...current.value, metadata });
}

/** A namespace first becomes Terminating; the namespace lifecycle empties it and removes it. */
function deleteNamespace(
  context: RegistryContext,
  resource: ResourceDefinition,
  current: StoredObject,
  options: DeletionOptions,
): DeletionResult {
  if (['default', 'kube-system', 'kube-public'].includes(current.name)) {
    throw forbidden(resource, current.name, 'this namespace may not be deleted');
  }
  const isTerminating = stringAt(current.value, 'metadata', 'deletionTimestamp') !== '';
  if (options.isDryRun === true || isTerminating) return { object: current, isGone: false };
  const metadata = { ...objectAt(current.value, 'metadata'), deletionTimestamp: timestamp(context) };
  const status = { ...objectAt(current.value, 'status'), phase: 'Terminating' };
  return { object: context.store.put(resource, { ...current.value, metadata, status }), isGone: false };
}
