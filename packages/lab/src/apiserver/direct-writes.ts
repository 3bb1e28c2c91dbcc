import { systemClock } from '@switchyard/core';
import { apiTime } from '../workloads/facts.ts';
import {
  isJsonList,
  isJsonObject,
  type Json,
  type JsonObject,
  listAt,
  objectAt,
  stringAt,
  withFields,
} from './json.ts';
import type { ResourceDefinition } from './resource.ts';
import { resourceTable } from './resources/resource-table.ts';
import type { ApiServer } from './server.ts';
import { StatusError } from './status-error.ts';

/** Kind and name of an object. `namespace` is '' for cluster-scoped kinds. */
export interface DirectName {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** An object in manifest form, for `DirectWrites.put`. */
export interface DirectObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

/**
 * Writes to a server without HTTP, for experiments that need a certain state. Watchers see each write like any other.
 */
export interface DirectWrites {
  /**
   * Creates or replaces the object with its status, by the server's rules. An object that the rules refuse or change is stored
   * unchanged, like one that an older server accepted; the result is then the server's message. An immutable field is changed by
   * deletion and creation. A missing namespace is created.
   */
  put(object: DirectObject): string | undefined;
  /** Removes the object if it exists. */
  remove(name: DirectName): void;
}

const deletion = { gracePeriodSeconds: 0 } as const;

/** Direct writes to a server. */
export function directWrites(server: ApiServer): DirectWrites {
  return {
    put: (object) => put(server, object as unknown as JsonObject),
    remove: ({ kind, namespace, name }) => {
      const resource = resourceOf(kind);
      if (server.store.get(resource, namespace, name) === undefined) return;
      server.registry.delete(resource, { namespace, name }, deletion);
    },
  };
}

function resourceOf(kind: string): ResourceDefinition {
  const found = resourceTable.find((one) => one.kind === kind && one.view === undefined);
  if (found === undefined) throw new Error(`the lab's API server has no kind ${kind}`);
  return found;
}

function put({ store, registry }: ApiServer, wanted: JsonObject): string | undefined {
  const resource = resourceOf(stringAt(wanted, 'kind'));
  const namespace = resource.isNamespaced ? stringAt(wanted, 'metadata', 'namespace') || 'default' : '';
  const name = { namespace, name: stringAt(wanted, 'metadata', 'name') };
  const stored = (): JsonObject | undefined => store.get(resource, namespace, name.name)?.value;
  const home = resourceOf('Namespace');
  if (namespace !== '' && store.get(home, '', namespace) === undefined) {
    registry.create(home, '', { metadata: { name: namespace } });
  }
  const write = (): string | undefined => {
    if (stored() !== undefined) {
      const apply = (current: JsonObject): JsonObject => replacement(current, wanted);
      const refusal = refusalOf(() => registry.update(resource, name, { part: 'main', apply }));
      if (refusal === undefined) return undefined;
      registry.delete(resource, name, deletion);
    }
    return refusalOf(() => registry.create(resource, namespace, wanted));
  };
  const refusal = write();
  const { status } = wanted;
  if (refusal === undefined && isJsonObject(status) && resource.subresources.includes('status')) {
    registry.update(resource, name, { part: 'status', apply: (current) => ({ ...current, status }) });
  }
  const now = stored();
  if (now !== undefined && holds(now, without(wanted, 'metadata', 'kind', 'apiVersion'))) return refusal;
  store.put(resource, forced(now, wanted, `forced-${namespace}-${name.name}`));
  return refusal ?? 'the API server drops some fields';
}

/** Returns the wanted object with the server's uid and version. */
function replacement(current: JsonObject, wanted: JsonObject): JsonObject {
  const uid = stringAt(current, 'metadata', 'uid');
  const resourceVersion = stringAt(current, 'metadata', 'resourceVersion');
  return { ...wanted, metadata: { ...objectAt(wanted, 'metadata'), uid, resourceVersion } };
}

/** Returns the wanted object with what the server has added to the stored one. */
function forced(stored: JsonObject | undefined, wanted: JsonObject, uid: string): JsonObject {
  const spec = { ...objectAt(stored, 'spec'), ...objectAt(wanted, 'spec') };
  const metadata = {
    uid,
    creationTimestamp: apiTime(systemClock.now()),
    ...objectAt(wanted, 'metadata'),
    ...objectAt(stored, 'metadata'),
  };
  return { ...stored, ...wanted, ...(Object.keys(spec).length > 0 ? { spec } : {}), metadata };
}

function refusalOf(write: () => unknown): string | undefined {
  try {
    write();
    return undefined;
  } catch (error) {
    if (error instanceof StatusError && error.fields.code === 422) return error.message;
    throw error;
  }
}

function without(object: JsonObject, ...fields: readonly string[]): JsonObject {
  return withFields(object, Object.fromEntries(fields.map((field) => [field, undefined])));
}

/** Whether `stored` contains all wanted fields; it may have more. Undefined, null, '' and an empty list are equal. */
function holds(stored: Json | undefined, wanted: Json | undefined): boolean {
  if (isEmpty(wanted)) return true;
  if (isJsonObject(wanted)) {
    return isJsonObject(stored) && Object.entries(wanted).every(([key, value]) => holds(stored[key], value));
  }
  if (isJsonList(wanted)) {
    const list = listAt({ list: stored ?? [] }, 'list');
    return list.length === wanted.length && wanted.every((one, index) => holds(list[index], one));
  }
  return stored === wanted;
}

function isEmpty(value: Json | undefined): boolean {
  return value === undefined || value === null || value === '' || (isJsonList(value) && value.length === 0);
}
