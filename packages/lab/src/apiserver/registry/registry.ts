import type { Clock, Random } from '@switchyard/core';
import type { Allocations } from '../allocations.ts';
import type { JsonObject } from '../json.ts';
import type { ResourceDefinition } from '../resource.ts';
import type { Store } from '../store/store.ts';
import type { StoredObject } from '../store/stored-object.ts';
import { createObject } from './create.ts';
import { deleteObject } from './delete.ts';
import { updateObject } from './update.ts';

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

/** The body of a DELETE. */
export interface DeletionOptions {
  readonly gracePeriodSeconds?: number | undefined;
  readonly propagationPolicy?: string | undefined;
  readonly isDryRun?: boolean;
  /** Preconditions; '' is none. */
  readonly uid?: string;
  readonly resourceVersion?: string;
}

/** Result of a DELETE. */
export interface DeletionResult {
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
